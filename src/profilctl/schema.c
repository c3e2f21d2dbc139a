/* schema.c - the schema of everything that --json writes */
#include <stdio.h>

#include "core/log.h"

#include "verb.h"

#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define STRING "{\"type\":\"string\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define PERCENT "{\"type\":\"number\",\"minimum\":0,\"maximum\":100}"
#define COUNTS "{\"type\":\"array\",\"items\":" COUNT "}"
#define STRINGS "{\"type\":\"array\",\"items\":" STRING "}"
#define NUMBERS "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}"
#define OBJECT(required, properties) \
	"{\"type\":\"object\",\"required\":[" required "],\"properties\":{" properties "}}"
#define ARRAY(of) "{\"type\":\"array\",\"items\":" of "}"

static const char samples[] = OBJECT("\"total\",\"binned\",\"unmatched\",\"lost\"",
				     "\"total\":" COUNT ",\"binned\":" COUNT ",\"unmatched\":" COUNT
				     ",\"lost\":" COUNT ",\"saturated\":" COUNT);

static const char function[] = OBJECT(
	"\"name\",\"object\",\"samples\",\"percent\"",
	"\"name\":" STRING ",\"object\":" STRING ",\"samples\":" COUNT ",\"percent\":" PERCENT
	",\"interval\":{\"type\":\"array\",\"items\":" PERCENT ",\"minItems\":2,\"maxItems\":2}"
	",\"offset\":" COUNT ",\"size\":" COUNT ",\"named\":" BOOLEAN ",\"shared\":" BOOLEAN
	",\"slices\":" COUNTS);

static const char object[] =
	OBJECT("\"path\",\"build_id\"", "\"path\":" STRING ",\"build_id\":" STRING
					",\"vaddr\":{\"type\":\"integer\"},\"program\":" BOOLEAN);

#define THREAD                                 \
	OBJECT("\"name\",\"tid\",\"samples\"", \
	       "\"name\":" STRING ",\"pid\":" COUNT ",\"tid\":" COUNT ",\"samples\":" COUNT)

/* An object, an offset, bytes from there on, and samples: all together, or in slices. */
#define PLACE "{\"type\":\"array\",\"items\":" COUNT ",\"minItems\":4,\"maxItems\":4}"
#define BAND                                                                             \
	"{\"type\":\"array\",\"prefixItems\":[" COUNT "," COUNT "," COUNT "," COUNTS "]" \
	",\"minItems\":4,\"maxItems\":4}"

static const char profile[] =
	"{\"type\":\"object\",\"required\":[\"schema\",\"tick_ns\",\"duration_ns\",\"samples\","
	"\"functions\",\"objects\"],\"properties\":{\"schema\":{\"const\":\"profil/1\"}"
	",\"command\":" STRING ",\"pid\":" COUNT ",\"started\":" COUNT
	",\"command_status\":{\"type\":[\"integer\",\"null\"]}"
	",\"tick_ns\":" COUNT ",\"duration_ns\":" COUNT ",\"cpu_ns\":" COUNT ",\"slice_ns\":" COUNT
	",\"threads\":" ARRAY(THREAD) ",\"places\":" ARRAY(PLACE) ",\"bands\":" ARRAY(
		BAND) ",\"samples\":%s,\"functions\":{\"type\":\"array\",\"items\":%s}"
		      ",\"objects\":{\"type\":\"array\",\"items\":%s}}}";

static const char list[] = OBJECT(
	"\"schema\",\"profiles\"",
	"\"schema\":{\"const\":\"profil-list/1\"},\"profiles\":" ARRAY(OBJECT(
		"\"pid\",\"tick_ns\",\"total\"",
		"\"pid\":" COUNT ",\"command\":" STRING ",\"uid\":" COUNT
		",\"kind\":{\"enum\":[\"reader\",\"own\"]},\"tick_ns\":" COUNT ",\"total\":" COUNT
		",\"unmatched\":" COUNT ",\"lost\":" COUNT ",\"bins\":" COUNT)));

static const char status[] =
	OBJECT("\"schema\",\"pid\",\"uptime_ns\"",
	       "\"schema\":{\"const\":\"profil-status/1\"},\"pid\":" COUNT ",\"uptime_ns\":" COUNT
	       ",\"replay\":" BOOLEAN ",\"tick_ns\":" COUNT ",\"fast_tick_ns\":" COUNT
	       ",\"profiles\":" COUNT ",\"regions\":" COUNT ",\"chunks\":" COUNT);

static const char diff[] = OBJECT(
	"\"schema\",\"functions\"",
	"\"schema\":{\"const\":\"profil-diff/1\"},\"commands\":" STRINGS ",\"total\":" COUNTS
	",\"tested\":" COUNT ",\"functions\":" ARRAY(OBJECT(
		"\"name\",\"object\",\"samples\",\"significant\"",
		"\"name\":" STRING ",\"object\":" STRING ",\"samples\":" COUNTS
		",\"percent\":" NUMBERS ",\"interval\":" NUMBERS ",\"p\":{\"type\":\"number\"}"
		",\"significant\":" BOOLEAN)));

static const char doctor[] =
	OBJECT("\"schema\",\"findings\"",
	       "\"schema\":{\"const\":\"profil-doctor/1\"},\"findings\":" ARRAY(
		       OBJECT("\"what\",\"state\",\"says\"",
			      "\"what\":" STRING ",\"state\":{\"enum\":[\"ok\",\"note\",\"lack\"]}"
			      ",\"says\":" STRING ",\"cure\":" STRING)));

int verb_schema(const struct options *o)
{
	if (o->argc) {
		log_err("schema: takes no arguments");
		return CTL_USAGE;
	}
	puts("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"oneOf\":[");
	printf(profile, samples, function, object);
	printf(",\n%s,\n%s,\n%s,\n%s]}\n", list, status, diff, doctor);
	return CTL_OK;
}
