# table.awk - guests' logs as a table: a line for each test, a column for each guest
#
# A guest that has no such test has a "-" there.

FNR == 1 {
	guest = FILENAME
	sub(/.*\//, "", guest)
	sub(/\.log$/, "", guest)
	guests[++nguests] = guest
}

/^kernel / {
	kernel[guest] = $2
	sub(/[-+].*/, "", kernel[guest])
}

/^suite / {
	suite = $2
}

/^(ok|FAIL|skip) / {
	verdict = $1
	sub(/^[^ ]* /, "")
	if (verdict != "ok")
		sub(/: .*/, "")
	test = suite ": " $0
	if (!(test in seen)) {
		seen[test]
		tests[++ntests] = test
	}
	said[test, guest] = verdict
	count[guest, verdict]++
}

function line(head, key, i) {
	printf "%-88.88s", head
	for (i = 1; i <= nguests; i++)
		printf " %-9s", cell(key, guests[i])
	printf "\n"
}

function cell(key, guest) {
	if (key == "guest")
		return guest
	if (key == "kernel")
		return kernel[guest] ? kernel[guest] : "-"
	if (key in sums)
		return count[guest, key] + 0
	return (key, guest) in said ? said[key, guest] : "-"
}

END {
	sums["ok"]
	sums["FAIL"]
	sums["skip"]
	print ""
	line("guest", "guest")
	line("kernel", "kernel")
	for (i = 1; i <= ntests; i++)
		line(tests[i], tests[i])
	line("passed", "ok")
	line("failed", "FAIL")
	line("skipped", "skip")
}
