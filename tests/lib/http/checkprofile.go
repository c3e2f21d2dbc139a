// checkprofile.go - reads profiles as collectors do, with google/pprof's own parser
//
// usage: checkprofile FILE...            prints "FILE SAMPLES NANOSECONDS BEGAN DURATION" of each
//
//	checkprofile -sum FILE... WHOLE ends with 0 where all but the last add up to the last
//	checkprofile -soak LIST PERCENT ends with 0 where consecutive profiles add up to the difference of
//	                                the totals at their ends, as far as both have the same snapshots,
//	                                which PERCENT must have, and all whose requests come within 100 ms;
//	                                LIST is what client.py's soak prints
//
// Each must be valid (CheckValid), with ids that are dense from 1 on, and a mapping for every
// location.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/google/pprof/profile"
)

type place struct {
	file, build, function string
	address               uint64
	callers               string
}

func die(format string, a ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
	os.Exit(1)
}

func read(name string) *profile.Profile {
	f, err := os.Open(name)
	if err != nil {
		die("%v", err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		die("%s: %v", name, err)
	}
	if err := p.CheckValid(); err != nil {
		die("%s: %v", name, err)
	}
	check(name, p)
	return p
}

func check(name string, p *profile.Profile) {
	for i, m := range p.Mapping {
		if m.ID != uint64(i)+1 {
			die("%s: mapping %d has id %d", name, i+1, m.ID)
		}
		if m.Limit < m.Start {
			die("%s: mapping %s ends before it begins", name, m.File)
		}
	}
	for i, f := range p.Function {
		if f.ID != uint64(i)+1 {
			die("%s: function %d has id %d", name, i+1, f.ID)
		}
	}
	for i, l := range p.Location {
		if l.ID != uint64(i)+1 {
			die("%s: location %d has id %d", name, i+1, l.ID)
		}
		if l.Mapping == nil {
			die("%s: location %d has no mapping", name, l.ID)
		}
		if l.Address != 0 && (l.Address < l.Mapping.Start || l.Address >= l.Mapping.Limit) {
			die("%s: address %#x is outside of %s", name, l.Address, l.Mapping.File)
		}
	}
	for _, s := range p.Sample {
		for _, v := range s.Value {
			if v <= 0 {
				die("%s: a sample has the value %d", name, v)
			}
		}
		if s.Value[0]*p.Period != s.Value[1] {
			die("%s: %d samples are %d ns", name, s.Value[0], s.Value[1])
		}
	}
	if p.DurationNanos <= 0 || p.TimeNanos <= 0 {
		die("%s: began at %d, took %d", name, p.TimeNanos, p.DurationNanos)
	}
}

// Labels are left out: which are known differs from interval to interval.
func add(sum map[place]int64, p *profile.Profile, sign int64) {
	for _, s := range p.Sample {
		l := s.Location[0]
		k := place{file: l.Mapping.File, build: l.Mapping.BuildID, address: l.Address}
		if len(l.Line) > 0 {
			k.function = l.Line[0].Function.Name
		}
		for _, l := range s.Location[1:] {
			k.callers += fmt.Sprintf(" %s+%#x", l.Mapping.BuildID+l.Mapping.File, l.Address)
		}
		sum[k] += sign * s.Value[0]
	}
}

func first(sum map[place]int64) (place, int64) {
	for k, n := range sum {
		if n != 0 {
			return k, n
		}
	}
	return place{}, 0
}

func count(p *profile.Profile) (n int64) {
	for _, s := range p.Sample {
		n += s.Value[0]
	}
	return n
}

// Snapshots are shared for 100 ms. A second one in less time is a defect; a later one shows that the machine was slow.
const shared = 90e6

// A run of profiles, each of which begins with the snapshot that ended the one before it, begins and
// ends with a total.
func soak(list string, percent int) {
	type part struct {
		name     string
		from, to int
	}
	var parts []part
	var samples, exact, gaps, run int
	totals := map[int]string{}
	f, err := os.Open(list)
	if err != nil {
		die("%v", err)
	}
	for {
		var kind, name string
		var from, to int
		if n, _ := fmt.Fscanf(f, "%s %s %d-%d\n", &kind, &name, &from, &to); n != 4 {
			break
		}
		if kind == "total" {
			totals[to] = name
		} else {
			parts = append(parts, part{name, from, to})
		}
	}
	var sum map[place]int64
	var end int64
	for i, t := range parts {
		p := read(t.name)
		if i > 0 && t.from != parts[i-1].to {
			if apart := p.TimeNanos - end; apart > -shared && apart < shared {
				die("%s begins %d ns after the end of the one before it, with another snapshot", t.name, apart)
			}
			gaps++
			sum = nil
		}
		end = p.TimeNanos + p.DurationNanos
		if total, ok := totals[t.from]; ok {
			sum, run = map[place]int64{}, 0
			add(sum, read(total), 1)
		}
		if sum == nil {
			continue
		}
		run++
		add(sum, p, 1)
		if total, ok := totals[t.to]; ok {
			p = read(total)
			add(sum, p, -1)
			if k, n := first(sum); n != 0 {
				die("up to %s: %+d samples at %v", total, n, k)
			}
			exact += run
			samples = int(count(p))
			sum = nil
		}
	}
	fmt.Printf("%d of %d profiles in exact sums, %d gaps, %d samples in the last total\n",
		exact, len(parts), gaps, samples)
	if exact == 0 || exact*100 < len(parts)*percent {
		os.Exit(1)
	}
}

func main() {
	args := os.Args[1:]
	if args[0] == "-soak" {
		percent, err := strconv.Atoi(args[2])
		if err != nil {
			die("%v", err)
		}
		soak(args[1], percent)
		return
	}
	if args[0] != "-sum" {
		for _, name := range args {
			p := read(name)
			var n, ns int64
			for _, s := range p.Sample {
				n, ns = n+s.Value[0], ns+s.Value[1]
			}
			fmt.Println(name, n, ns, p.TimeNanos, p.DurationNanos)
		}
		return
	}
	sum := map[place]int64{}
	for i, name := range args[1:] {
		sign := int64(1)
		if i == len(args)-2 {
			sign = -1
		}
		add(sum, read(name), sign)
	}
	for k, n := range sum {
		if n != 0 {
			die("%+d samples at %v", n, k)
		}
	}
}
