#!/usr/bin/python3
"""otlp.py - reads ExportProfilesServiceRequests by protoc's classes, and checks the rules of their readers

usage: otlp.py COMMAND FILE...    COMMAND is total, types, names, stacks, owned, resources, attributes,
builds or requests: of each file, in their order, when its profiles begin, their total, and the least id

The rules are those of the proto itself, of Parca (pkg/normalizer/otel.go: ValidateOtelDictionary and
ValidateOtelProfile) and of Pyroscope (pkg/ingester/otlp/convert.go). A file that breaks one ends this with
status 1 and the rule.
"""
import collections
import gzip
import importlib.util
import os
import subprocess
import sys
import tempfile


def load():
    """The module that protoc makes of otlp.proto."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["protoc", f"-I{here}", f"--python_out={out}", "otlp.proto"], check=True)
        spec = importlib.util.spec_from_file_location("otlp_pb2", os.path.join(out, "otlp_pb2.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


class Broken(Exception):
    """A rule that a request breaks."""


def rule(holds, text):
    if not holds:
        raise Broken(text)


def unknown(message):
    """Whether the message, or one in it, has a field that otlp.proto does not know."""
    again = type(message)()
    again.CopyFrom(message)
    again.DiscardUnknownFields()
    return again.SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True)


class Request:
    TABLES = ("mapping", "location", "function", "link", "string", "attribute", "stack")

    def __init__(self, pb, raw):
        self.request = pb.ExportProfilesServiceRequest.FromString(raw)
        self.d = self.request.dictionary
        rule(not unknown(self.request), "a field is unknown")
        self.used = collections.defaultdict(set)
        self.check_dictionary()
        for _, _, profile in self.profiles():
            self.check_profile(profile)
        for name in self.TABLES:
            table = self.table(name)
            rest = set(range(1, len(table))) - self.used[name]
            rule(not rest, f"nothing refers to entry {min(rest, default=0)} of the {name} table")

    def table(self, name):
        return getattr(self.d, name + "_table")

    def string(self, index):
        return self.d.string_table[index]

    def profiles(self):
        for r in self.request.resource_profiles:
            for s in r.scope_profiles:
                for p in s.profiles:
                    yield r.resource, s.scope, p

    def use(self, name, index):
        rule(0 <= index < len(self.table(name)), f"index {index} is beyond the {name} table")
        self.used[name].add(index)
        return self.table(name)[index]

    def check_dictionary(self):
        for name in self.TABLES:
            table = self.table(name)
            rule(len(table), f"the {name} table is empty")
            zero = table[0] == "" if name == "string" else table[0].ByteSize() == 0
            rule(zero, f"entry 0 of the {name} table is not the zero value")
            keys = [e if name == "string" else e.SerializeToString(deterministic=True) for e in table]
            rule(len(set(keys)) == len(keys), f"an entry of the {name} table is twice in it")
        for e in list(self.d.attribute_table)[1:]:
            rule(self.use("string", e.key_strindex), "an attribute has no key")
            rule(e.HasField("value"), "an attribute has no value")
            self.use("string", e.unit_strindex)
        for e in list(self.d.function_table)[1:]:
            names = [self.use("string", i) for i in (e.name_strindex, e.system_name_strindex, e.filename_strindex)]
            rule(any(names), "a function has no name")
        for e in list(self.d.mapping_table)[1:]:
            self.use("string", e.filename_strindex)
            rule(e.memory_start <= e.memory_limit, "a mapping ends before it starts")
            for i in e.attribute_indices:
                self.use("attribute", i)
        for e in list(self.d.location_table)[1:]:
            m = self.use("mapping", e.mapping_index)
            rule(not e.mapping_index or m.memory_start <= e.address <= m.memory_limit,
                 "a location is outside of its mapping")
            for i in e.attribute_indices:
                self.use("attribute", i)
            for line in e.lines:
                rule(line.function_index, "a line has no function")
                self.use("function", line.function_index)
        for e in list(self.d.stack_table)[1:]:
            rule(e.location_indices, "a stack is empty")
            for i in e.location_indices:
                rule(i, "a stack has no location")
                self.use("location", i)
        self.used["link"].add(0)

    def check_profile(self, p):
        rule(p.samples, "a profile has no sample")
        rule(p.HasField("period_type") and p.period >= 0, "a profile has no period type")
        rule(len(p.profile_id) == 16 and any(p.profile_id), "a profile has no id")
        rule(p.time_unix_nano, "a profile has no time")
        for t in (p.sample_type, p.period_type):
            rule(self.use("string", t.type_strindex) and self.use("string", t.unit_strindex), "a type has no name")
        for i in p.attribute_indices:
            self.use("attribute", i)
        seen = set()
        for s in p.samples:
            self.use("stack", s.stack_index)
            rule(s.stack_index, "a sample has no stack")
            key = (s.stack_index, tuple(sorted(s.attribute_indices)), s.link_index)
            rule(key not in seen, "two samples have the same stack and attributes")
            seen.add(key)
            rule(len(s.values) == 1 and not s.timestamps_unix_nano, "a sample has not one value")
            rule(s.values[0] > 0, "a sample is empty")
            for i in s.attribute_indices:
                self.use("attribute", i)

    def attribute(self, index):
        e = self.d.attribute_table[index]
        return self.string(e.key_strindex), getattr(e.value, e.value.WhichOneof("value"))

    def frames(self, stack):
        """The names of a stack, outermost first."""
        names = []
        for i in self.d.stack_table[stack].location_indices:
            lines = self.d.location_table[i].lines
            names += [self.string(self.d.function_table[x.function_index].name_strindex) for x in lines] or ["?"]
        return names[::-1]


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def tell_requests(requests):
    for q in requests:
        profiles = [p for _, _, p in q.profiles()]
        print(min(p.time_unix_nano for p in profiles) // 10**9, sum(s.values[0] for p in profiles for s in p.samples),
              min(p.profile_id.hex() for p in profiles))


def tell(command, requests):
    counts = collections.Counter()
    for q in requests:
        for resource, _, p in q.profiles():
            whose = " ".join(sorted(f"{a.key}={value(a.value)}" for a in resource.attributes))
            if command == "types":
                kinds = [q.string(i) for t in (p.sample_type, p.period_type) for i in (t.type_strindex, t.unit_strindex)]
                counts[" ".join(kinds + [str(p.period)])] += 1
            if command == "ids":
                counts[p.profile_id.hex()] += 1
            for s in p.samples:
                if command == "total":
                    counts[""] += s.values[0]
                elif command == "names":
                    counts[q.frames(s.stack_index)[-1]] += s.values[0]
                elif command == "stacks":
                    counts[";".join(q.frames(s.stack_index))] += s.values[0]
                elif command == "owned":
                    of = [value(a.value) for a in resource.attributes if a.key in ("systemd.unit", "container.id")]
                    counts[" ".join(of + q.frames(s.stack_index))] += s.values[0]
                elif command == "resources":
                    counts[whose] += s.values[0]
                elif command == "attributes":
                    for key, text in map(q.attribute, s.attribute_indices):
                        counts[f"{key}={text}"] += s.values[0]
                elif command in ("builds", "frames"):
                    leaf = q.d.location_table[q.d.stack_table[s.stack_index].location_indices[0]]
                    of = leaf if command == "frames" else q.d.mapping_table[leaf.mapping_index]
                    for key, text in map(q.attribute, of.attribute_indices):
                        counts[f"{key}={text}"] += s.values[0]
    for key, n in sorted(counts.items()):
        print(f"{n} {key}".rstrip())


def main():
    pb = load()
    requests = []
    for path in sys.argv[2:]:
        with open(path, "rb") as f:
            raw = f.read()
        try:
            requests.append(Request(pb, gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw))
        except (Broken, OSError) as e:
            sys.exit(f"{os.path.basename(path)}: {e}")
    if sys.argv[1] == "requests":
        tell_requests(requests)
    else:
        tell(sys.argv[1], requests)


if __name__ == "__main__":
    main()
