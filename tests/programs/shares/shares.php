<?php
// shares.php - functions with known shares of the CPU time, by the process's own clock: SECONDS, lines to $TRUTH
$truth = [];
$rows = [];
for ($i = 0; $i < 600; $i++) $rows[] = ["a" => $i, "b" => [$i, $i, $i], "c" => "$i"];

function p_loop() {
	$t = 0;
	for ($i = 0; $i < 200000; $i++) $t += $i * $i % 7;
	return $t;
}

function p_recursion($n) {
	return $n < 2 ? $n : p_recursion($n - 1) + p_recursion($n - 2);
}

function p_depth($n) {
	if ($n) return p_depth($n - 1) + 1;
	$t = 0;
	for ($i = 0; $i < 200000; $i++) $t += $i & 3;
	return $t;
}

class Shape {
	private $side = 3;
	function p_method($n) {
		$t = 0;
		for ($i = 0; $i < $n; $i++) $t += $this->one($i);
		return $t;
	}
	function one($i) {
		return $i + $this->side & 3;
	}
}

function p_closure() {
	$a = [];
	for ($i = 0; $i < 8000; $i++) $a[] = $i * 7919 % 251;
	usort($a, fn($x, $y) => $x - $y);
}

function p_numbers($n) {
	for ($i = 0; $i < $n; $i++) yield $i & 3;
}

function p_generator() {
	$t = 0;
	foreach (p_numbers(60000) as $i) $t += $i;
	return $t;
}

function p_exception() {
	for ($i = 0; $i < 6000; $i++) {
		try {
			throw new Exception("x");
		} catch (Exception $e) {
		}
	}
}

function p_extension() {
	return hash("sha256", str_repeat("some text ", 100000));
}

function p_json() {
	global $rows;
	return json_decode(json_encode($rows));
}

function clock() {
	$used = getrusage();
	return $used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"] + ($used["ru_utime.tv_usec"] + $used["ru_stime.tv_usec"]) / 1e6;
}

function part($name, ...$arguments) {
	global $truth;
	$before = clock();
	is_array($name) ? [$name[0], $name[1]](...$arguments) : $name(...$arguments);
	$name = is_array($name) ? $name[1] : $name;
	$truth[$name] = ($truth[$name] ?? 0) + clock() - $before;
}

for ($end = microtime(true) + $argv[1]; microtime(true) < $end;) {
	part("p_loop");
	part("p_recursion", 20);
	part("p_depth", 60);
	part([new Shape, "p_method"], 60000);
	part("p_closure");
	part("p_generator");
	part("p_exception");
	part("p_extension");
	part("p_json");
}
foreach ($truth as $name => $seconds) file_put_contents(getenv("TRUTH"), "$name $seconds\n", FILE_APPEND);
