// page.js - shows what is hot now: asks for an interval after another, and fills in the tables
"use strict";

const ROWS = 60;
const at = (id) => document.getElementById(id);
let data = null;
let unit = null; // the only one to be shown

// Names come from files and processes: they are text, never markup.
function cell(text, kind, whole) {
	const td = document.createElement("td");
	td.className = kind || "";
	td.textContent = text === null ? "" : text;
	td.title = whole || td.textContent;
	return td;
}

function share(samples) {
	const td = cell("", "n share");
	const bar = document.createElement("progress");
	const number = document.createElement("span");
	bar.max = data.samples.total || 1;
	bar.value = samples;
	bar.setAttribute("aria-hidden", "true");
	number.textContent = (100 * samples / (data.samples.total || 1)).toFixed(1);
	td.append(number, bar);
	return td;
}

function numbers(samples) {
	return [cell((samples * data.tick_ns / data.duration_ns).toFixed(3), "n"), share(samples)];
}

function unitCell(name) {
	const td = cell("", "name");
	if (name === null)
		return td;
	const button = document.createElement("button");
	button.type = "button";
	button.textContent = name;
	button.addEventListener("click", () => { unit = name; show(); });
	td.append(button);
	return td;
}

function fill(id, rows) {
	const body = at(id).tBodies[0];
	const columns = at(id).tHead.rows[0].cells.length;
	const shown = rows.slice(0, ROWS).map((cells) => {
		const tr = document.createElement("tr");
		tr.append(...cells);
		return tr;
	});
	if (rows.length > ROWS || !rows.length) {
		const tr = document.createElement("tr");
		const td = cell(rows.length ? `${rows.length - ROWS} more` : "nothing");
		td.colSpan = columns;
		tr.className = "none";
		tr.append(td);
		shown.push(tr);
	}
	body.replaceChildren(...shown);
}

function matches(...names) {
	const wanted = at("search").value.toLowerCase();
	return names.some((n) => n !== null && n.toLowerCase().includes(wanted));
}

const base = (path) => path.startsWith("[") ? path : path.slice(path.lastIndexOf("/") + 1);
const isUnit = (name) => unit === null || name === unit;

// A place in a file does not say which unit ran it, unless one unit alone runs the file.
function shared(ofUnit) {
	const all = data.units[unit] || 0;
	return Math.max(0, all - ofUnit.reduce((sum, f) => sum + f.samples, 0));
}

function functionRows() {
	const found = data.functions.filter((f) => isUnit(f.unit));
	const rows = found.filter((f) => matches(f.name, f.object, f.unit))
		.map((f) => [...numbers(f.samples), cell(f.short, "name", f.name), cell(base(f.object), "name", f.object), unitCell(f.unit)]);
	const rest = unit === null ? 0 : shared(found);
	if (rest)
		rows.unshift([...numbers(rest), cell("(functions of files that other units run too, and rarer ones)", "rest"),
			cell(""), unitCell(unit)]);
	return rows;
}

function show() {
	if (!data)
		return;
	at("all").hidden = unit === null;
	at("only").textContent = unit === null ? "" : ` of ${unit}`;
	const units = Object.entries(data.units).sort((a, b) => b[1] - a[1]);
	fill("units", units.filter(([name]) => isUnit(name) && matches(name))
		.map(([name, samples]) => [...numbers(samples), unitCell(name)]));
	fill("functions", functionRows());
	fill("runs", data.runs.filter((r) => isUnit(r.unit) && matches(r.command, r.object, r.unit))
		.map((r) => [...numbers(r.samples), cell(r.command, "name"), cell(base(r.object), "name", r.object), unitCell(r.unit)]));
}

function say(text, wrong) {
	at("state").textContent = text;
	at("state").className = wrong ? "wrong" : "";
}

function tell(next) {
	const s = data.samples, busy = s.total * data.tick_ns / data.duration_ns;
	at("host").textContent = data.host || "this machine";
	say(`${busy.toFixed(2)} of ${data.cpus} CPUs busy, ${s.total} samples in ` +
		`${(data.duration_ns / 1e9).toFixed(1)} s, ${s.unmatched} unmatched, ${s.lost} lost; ` +
		`Linux ${data.kernel}; ${new Date().toLocaleTimeString()}` +
		(next ? `; the first interval is short, the next ones have ${next} s` : ""));
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// The first interval is short, so that the page is not empty for long.
async function refresh() {
	const first = !data, wanted = at("seconds").value, seconds = first ? 1 : wanted;
	const answer = await fetch(`/hot.json?seconds=${seconds}`, { cache: "no-store" });
	if (!answer.ok)
		throw new Error(await answer.text());
	data = await answer.json();
	tell(first && wanted !== "1" ? wanted : null);
	show();
}

async function run() {
	for (;;) {
		if (!at("refresh").checked || document.hidden) {
			await sleep(250);
			continue;
		}
		try {
			await refresh();
		} catch (error) {
			say(`No samples: ${error.message}`, true);
			await sleep(3000);
		}
	}
}

at("search").addEventListener("input", show);
at("all").addEventListener("click", () => { unit = null; show(); });
at("controls").addEventListener("submit", (event) => event.preventDefault());
run();
