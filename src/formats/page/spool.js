// spool.js - the time of profil-http's page: a strip on which a span is chosen, and another to compare with
"use strict";

{
	const LATEST_S = 30; // between two looks at the newest span
	const UNREAD_MS = 700; // between two looks at spans that are still being read
	const PERIODS = [[900, "15 min"], [3600, "1 h"], [6 * 3600, "6 h"], [86400, "1 day"], [0, "all"]];
	const at = (id) => document.getElementById(id);
	let data; // of the page that is shown
	let spans; // [[since, until], ...]: after, before; those that are wanted
	let active = 0; // which of them a drag on the strip chooses
	let shown = 0; // seconds of the strip that are visible; 0: all
	let asked = null; // the request that is going on
	let next = null; // the address that is wanted after it
	let timer = 0;

	function make(tag, parent, properties) {
		const e = Object.assign(document.createElement(tag), properties);

		parent.append(e);
		return e;
	}

	const when = at("when");
	const tools = make("div", when, { className: "flame-tools" });
	const placeStrip = makeStrip(when, { extent, step, bars: () => data.strip, spans: () => spans, active: () => active, text, choose });
	const said = make("output", when, { className: "dim said", id: "said" });
	const periods = make("select", make("label", tools, { textContent: "strip " }), { id: "shown" });
	const newest = PERIODS.slice(0, 4).map(([seconds, text]) => make("button", tools, { textContent: `last ${text}`, onclick: () => last(seconds) }));
	const compare = make("button", tools, { textContent: "compare", id: "compare", onclick: toggle });
	const sides = ["after", "before"].map((text, k) => make("button", tools, { textContent: text, className: `side side-${k}`, onclick: () => activate(k) }));

	for (const [seconds, text] of PERIODS) make("option", periods, { value: seconds, textContent: text });

	// The seconds at both ends of the strip.
	function extent() {
		const all = data.strip;

		if (!all.length) return [0, 1];
		const end = all.at(-1)[0] + all.at(-1)[1];
		return [shown ? Math.max(all[0][0], end - shown) : all[0][0], Math.max(end, all[0][0] + 1)];
	}

	function step() {
		return data.strip.length ? Math.max(1, data.strip.at(-1)[1]) : 60;
	}

	function text(t) {
		return new Date(1000 * t).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
	}

	function length(s) {
		return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 6) / 10} min` : `${Math.round(s / 360) / 10} h`;
	}

	function place() {
		said.textContent = spans.map(([since, until], k) => `${spans.length < 2 ? "" : ["after: ", "before: "][k]}${text(since)} to ${text(until)}, ${length(until - since)}`).reverse().join(" · ");
		compare.setAttribute("aria-pressed", String(spans.length > 1));
		sides.forEach((side, k) => {
			side.hidden = spans.length < 2;
			side.setAttribute("aria-pressed", String(active === k));
		});
		placeStrip();
	}

	// The address holds all that is chosen.
	function address(latest) {
		const to = new URL(location.pathname, location.href);
		const form = at("choice") ? new FormData(at("choice")) : [];

		for (const [name, value] of form) if (value && !/^v?(from|to)$/.test(name)) to.searchParams.set(name, value);
		spans.forEach(([since, until], k) => {
			if (k || !latest) {
				to.searchParams.set(["from", "vfrom"][k], since);
				to.searchParams.set(["to", "vto"][k], until);
			}
		});
		if (shown) to.searchParams.set("strip", shown);
		return to;
	}

	// Shows what the page at @to has. While one is being loaded, only the newest wish is kept.
	async function show(to, replace) {
		clearTimeout(timer);
		if (asked) {
			next = [to, replace];
			return;
		}
		asked = to;
		try {
			const answer = await fetch(to, { cache: "no-store" });
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			const view = page.getElementById("view");

			if (!view) throw new Error(page.body.textContent.trim() || `status ${answer.status}`);
			to.hash = location.hash;
			if (to.href !== location.href) history[replace ? "replaceState" : "pushState"](null, "", to);
			exchange(document.adoptNode(view));
			document.body.dataset.shown = Number(document.body.dataset.shown || 0) + 1;
		} catch (error) {
			said.textContent = `No profile: ${error.message}`;
			timer = setTimeout(() => show(to, true), 3000);
		}
		asked = null;
		if (next) show(...[next, (next = null)][0]);
	}

	// The graph stays where it was zoomed to, and the focus where it was.
	function exchange(view) {
		const focused = document.activeElement.id;
		const graph = document.activeElement.className === "graph";
		const state = flames.length ? flames.pop() : null;
		const kept = state && state.state();

		if (state) state.stop();
		at("view").replaceWith(view);
		view.querySelectorAll(".tools + table").forEach(drawTable);
		view.querySelectorAll(".flame").forEach((section) => flames.push(drawFlame(section)));
		if (kept && flames.length) flames[0].restore(kept);
		if (graph && view.querySelector(".graph")) view.querySelector(".graph").focus();
		else if (focused && at(focused)) at(focused).focus();
		read();
	}

	// Takes over what a page that was loaded or exchanged has.
	function read() {
		const moving = asked && next; // the strip is ahead of the page

		data = JSON.parse(document.querySelector(".spool-data").textContent);
		if (!moving) spans = data.spans.length ? data.spans : [[0, 0]];
		if (active >= spans.length) active = 0;
		if (at("choice")) {
			at("choice").onchange = () => show(address(data.latest));
			at("choice").onsubmit = (event) => event.preventDefault();
		}
		place();
		clearTimeout(timer);
		if (data.unread) timer = setTimeout(() => show(address(data.latest), true), UNREAD_MS);
		else if (data.latest) timer = setTimeout(again, 1000 * LATEST_S);
	}

	// A page that nobody looks at is not loaded again.
	function again() {
		if (document.hidden) timer = setTimeout(again, 1000);
		else show(address(true), true);
	}

	function choose(k, since, until, replace) {
		active = k;
		spans[k] = [Math.min(since, until), Math.max(since, until)].map(Math.round);
		if (spans[k][1] - spans[k][0] < 1) spans[k][1] = spans[k][0] + step();
		place();
		show(address(false), replace);
	}

	function last(seconds) {
		const end = extent()[1];

		choose(active, end - seconds, end);
	}

	function activate(k) {
		active = k;
		place();
	}

	// Compares with as long a time just before.
	function toggle() {
		const [since, until] = spans[0];

		if (spans.length > 1) spans.pop();
		else spans.push([since - (until - since), since]);
		active = spans.length - 1;
		place();
		show(address(false));
	}

	periods.onchange = () => {
		shown = Number(periods.value);
		history.replaceState(null, "", Object.assign(address(data.latest), { hash: location.hash }));
		place();
	};
	window.addEventListener("popstate", () => show(new URL(location.href), true));
	shown = Number(new URL(location.href).searchParams.get("strip")) || 0;
	periods.value = shown;
	newest.forEach((button) => (button.type = "button"));
	read();
}
