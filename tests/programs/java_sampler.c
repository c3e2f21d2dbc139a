/* java_sampler.c - counts the methods of a Java program by SIGPROF: samples, file, name
 *
 * A JVMTI agent, whose option is the file that it writes. A sample in the code of a compiled method is that method's;
 * elsewhere in the virtual machine's code its own walker says which method runs, and what it says of native code
 * does not count.
 */
#define _GNU_SOURCE
#include <jvmti.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#define METHODS 65536
#define RANGES 65536
#define OF(array) (sizeof(array) / sizeof(*(array)))

/* What the walker takes, by HotSpot's forte.cpp. */
typedef struct {
	jint line;
	jmethodID method;
} CallFrame;

typedef struct {
	JNIEnv *env;
	jint num_frames;
	CallFrame *frames;
} CallTrace;

static void (*async_call_trace)(CallTrace *trace, jint depth, void *context);
static JavaVM *machine;
static const char *path;
static struct {
	_Atomic(jmethodID) method;
	atomic_long samples;
} methods[METHODS];
static struct {
	uintptr_t start, end;
	jmethodID method; /* NULL: a stub, or the interpreter */
} ranges[RANGES];
static atomic_size_t ranges_n;
static atomic_flag ranges_change = ATOMIC_FLAG_INIT;

static void count(jmethodID method)
{
	size_t at = ((uintptr_t)method >> 3) * 0x9e3779b97f4a7c15 >> 48;

	for (;; at = (at + 1) % METHODS) {
		jmethodID none = NULL;

		if (atomic_compare_exchange_strong(&methods[at].method, &none, method) ||
		    none == method) {
			atomic_fetch_add(&methods[at].samples, 1);
			return;
		}
	}
}

static bool range_at(uintptr_t pc, jmethodID *method)
{
	for (size_t i = ranges_n;
	     i-- > 0;) { /* the latest first: code goes, and other code takes its place */
		if (pc < ranges[i].start || pc >= ranges[i].end)
			continue;
		*method = ranges[i].method;
		return true;
	}
	return false;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	CallFrame frame;
	CallTrace trace = { .frames = &frame };
	jmethodID method;

	(void)number, (void)info;
	if (!range_at(pc, &method))
		return;
	if (!method) {
		if ((*machine)->GetEnv(machine, (void **)&trace.env, JNI_VERSION_1_6))
			return;
		async_call_trace(&trace, 1, context);
		if (trace.num_frames < 1)
			return;
		method = frame.method;
	}
	count(method);
}

static void add_range(const void *start, jint size, jmethodID method)
{
	while (atomic_flag_test_and_set(&ranges_change))
		continue;
	if (ranges_n < RANGES) {
		ranges[ranges_n].start = (uintptr_t)start;
		ranges[ranges_n].end = (uintptr_t)start + (uintptr_t)size;
		ranges[ranges_n].method = method;
		ranges_n++;
	}
	atomic_flag_clear(&ranges_change);
}

static void JNICALL on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *start,
				jint maps, const jvmtiAddrLocationMap *map, const void *info)
{
	(void)jvmti, (void)maps, (void)map, (void)info;
	add_range(start, size, method);
}

static void JNICALL on_generated(jvmtiEnv *jvmti, const char *name, const void *start, jint size)
{
	(void)jvmti, (void)name;
	add_range(start, size, NULL);
}

/* The walker knows only methods whose identifiers exist. */
static void JNICALL on_prepared(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	jmethodID *ids;
	jint n;

	(void)env, (void)thread;
	if (!(*jvmti)->GetClassMethods(jvmti, class, &n, &ids))
		(*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
}

/* It walks nothing unless this event is wanted. */
static void JNICALL on_loaded(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass class)
{
	(void)jvmti, (void)env, (void)thread, (void)class;
}

static void JNICALL on_start(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
	jclass *classes;
	jint n;

	if ((*jvmti)->GetLoadedClasses(jvmti, &n, &classes))
		return;
	for (jint i = 0; i < n; i++)
		on_prepared(jvmti, env, thread, classes[i]);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}

static void JNICALL on_end(jvmtiEnv *jvmti, JNIEnv *env)
{
	FILE *out = fopen(path, "w");
	char *name;

	(void)env;
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	if (!out) {
		perror(path);
		return;
	}
	for (size_t i = 0; i < METHODS; i++) {
		if (!methods[i].method ||
		    (*jvmti)->GetMethodName(jvmti, methods[i].method, &name, NULL, NULL))
			continue;
		fprintf(out, "%ld\t\t%s\n", (long)methods[i].samples, name);
		(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	}
	fclose(out);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	static const jvmtiEvent events[] = { JVMTI_EVENT_VM_INIT,
					     JVMTI_EVENT_VM_DEATH,
					     JVMTI_EVENT_CLASS_LOAD,
					     JVMTI_EVENT_CLASS_PREPARE,
					     JVMTI_EVENT_COMPILED_METHOD_LOAD,
					     JVMTI_EVENT_DYNAMIC_CODE_GENERATED };
	jvmtiEventCallbacks calls = { .VMInit = on_start,
				      .VMDeath = on_end,
				      .ClassLoad = on_loaded,
				      .ClassPrepare = on_prepared,
				      .CompiledMethodLoad = on_compiled,
				      .DynamicCodeGenerated = on_generated };
	jvmtiCapabilities wanted = { .can_generate_compiled_method_load_events = 1 };
	jvmtiEnv *jvmti;

	(void)reserved;
	machine = vm;
	path = strdup(options);
	*(void **)&async_call_trace = dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (!path || !async_call_trace || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) ||
	    (*jvmti)->AddCapabilities(jvmti, &wanted) ||
	    (*jvmti)->SetEventCallbacks(jvmti, &calls, sizeof(calls)))
		return JNI_ERR;
	for (size_t i = 0; i < OF(events); i++)
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL))
			return JNI_ERR;
	return JNI_OK;
}
