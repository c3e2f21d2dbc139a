-- Ten questions to the profiles of a fleet. Replace what is in quotes; "cores" are CPUs in use on average.

-- 1. Hot functions of the fleet.
SELECT function, object, sum(value) / 1e9 AS cpu_s, round(100 * cpu_s / (SELECT sum(value) / 1e9 FROM profil WHERE kind = 'stack' AND event = 'cpu'), 2) AS percent
FROM profil WHERE kind = 'stack' AND event = 'cpu'
GROUP BY function, object ORDER BY cpu_s DESC LIMIT 20;

-- 2. Hot functions of one build.
SELECT function, sum(value) / 1e9 AS cpu_s
FROM profil WHERE kind = 'stack' AND event = 'cpu' AND build_id = 'BUILD_ID'
GROUP BY function ORDER BY cpu_s DESC LIMIT 20;

-- 3. Functions that are new since a deploy.
SELECT function, object, sum(value) / 1e9 AS cpu_s
FROM profil WHERE kind = 'stack' AND event = 'cpu' AND time >= toDateTime('AFTER')
	AND (function, object) NOT IN (SELECT function, object FROM profil WHERE kind = 'stack' AND time < toDateTime('AFTER'))
GROUP BY function, object ORDER BY cpu_s DESC LIMIT 20;

-- 4. By pod and container.
SELECT pod, container, sum(value) / 1e9 AS cpu_s
FROM profil WHERE kind = 'owner' AND event = 'cpu'
GROUP BY pod, container ORDER BY cpu_s DESC LIMIT 20;

-- 5. By systemd unit.
SELECT unit, sum(value) / 1e9 AS cpu_s, uniq(host) AS hosts
FROM profil WHERE kind = 'owner' AND event = 'cpu'
GROUP BY unit ORDER BY cpu_s DESC LIMIT 20;

-- 6. The callers of a function.
SELECT stack[indexOf(stack, 'FUNCTION') - 1] AS caller, sum(value) / 1e9 AS cpu_s
FROM profil WHERE kind = 'stack' AND event = 'cpu' AND has(stack, 'FUNCTION')
GROUP BY caller ORDER BY cpu_s DESC LIMIT 20;

-- 7. Functions with what they call: a sample counts once for each function on its stack.
SELECT frame, sum(value) / 1e9 AS cpu_s
FROM profil ARRAY JOIN arrayDistinct(stack) AS frame WHERE kind = 'stack' AND event = 'cpu'
GROUP BY frame ORDER BY cpu_s DESC LIMIT 20;

-- 8. Regressions between two spans of time: shares, and the deviations by which they differ.
SELECT function, object, sumIf(samples, before) AS a, sumIf(samples, NOT before) AS b,
	any(all_a) AS n, any(all_b) AS m, 100 * (b / m - a / n) AS points,
	(b / m - a / n) / sqrt((a + b) / (n + m) * (1 - (a + b) / (n + m)) * (1 / n + 1 / m)) AS deviations
FROM (SELECT function, object, samples, time < toDateTime('AFTER') AS before FROM profil WHERE kind = 'stack' AND event = 'cpu')
CROSS JOIN (SELECT sumIf(samples, time < toDateTime('AFTER')) AS all_a, sumIf(samples, time >= toDateTime('AFTER')) AS all_b
	FROM profil WHERE kind = 'stack' AND event = 'cpu')
GROUP BY function, object HAVING a + b > 100 ORDER BY deviations DESC LIMIT 20;

-- 9. Hosts on which a function takes another share than elsewhere.
SELECT host, sumIf(value, function = 'FUNCTION') / sum(value) AS share, sum(value) / 1e9 AS cpu_s
FROM profil WHERE kind = 'stack' AND event = 'cpu'
GROUP BY host ORDER BY share DESC LIMIT 20;

-- 10. A function by the hour: cores in use on all hosts.
SELECT toStartOfHour(time) AS hour, sum(value) / 1e9 / 3600 AS cores
FROM profil WHERE kind = 'stack' AND event = 'cpu' AND function = 'FUNCTION'
GROUP BY hour ORDER BY hour;
