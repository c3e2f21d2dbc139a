// flame.js - the flame graph of a page: mouse, keyboard, search, callers; names are only ever text
"use strict";

// Draws the graph of a section, which has its data. Returns what a page that replaces the section needs.
function drawFlame(section) {
	const ROW = 20; // pixels
	const NARROWEST = 1; // what is narrower is not drawn
	const NARROWEST_SUM = 3; // neighbours that are, too, get a box together from this width on
	const LEAST_TEXT = 24;
	const CHANCE = 0.01; // probability that chance colours any call
	const data = JSON.parse(section.querySelector(".flame-data").textContent);
	const gone = new AbortController(); // aborted when the section is replaced

	function make(tag, name, parent, text) {
		const e = document.createElement(tag);

		e.className = name;
		if (text !== undefined) e.textContent = text;
		if (parent) parent.append(e);
		return e;
	}

	function hash(text) {
		let h = 7;

		for (const c of text) h = (Math.imul(h, 31) + c.codePointAt(0)) | 0;
		return h >>> 0;
	}

	// Nodes in arrays, callers before what they call; end[i] is behind all that is below node i.
	function newTree() {
		return { frame: [], depth: [], parent: [], end: [], self: [[], []] };
	}

	function addNode(t, depth, frame, a, b) {
		t.depth.push(depth);
		t.frame.push(frame);
		t.self[0].push(a);
		t.self[1].push(b);
	}

	// Fills in what follows from depths and counts: width is a share, start where it begins.
	function finish(t) {
		const n = t.depth.length;
		const path = [];

		for (let i = 0; i < n; i++) {
			while (path.length > t.depth[i]) t.end[path.pop()] = i;
			t.parent[i] = path.length ? path[path.length - 1] : 0;
			path.push(i);
		}
		while (path.length) t.end[path.pop()] = n;
		t.total = t.self.map((self) => self.slice());
		for (let i = n - 1; i > 0; i--)
			for (const total of t.total) total[t.parent[i]] += total[i];
		t.sides = t.total.filter((total) => total[0] > 0);
		t.width = t.frame.map((_, i) => t.sides.reduce((sum, total) => sum + total[i] / total[0], 0) / (t.sides.length || 1));
		t.start = [0];
		const used = t.width.map(() => 0);
		for (let i = 1; i < n; i++) {
			const p = t.parent[i];

			t.start[i] = t.start[p] + used[p];
			used[p] += t.width[i];
		}
		return t;
	}

	// Of the samples of each node @self; without it all of them.
	function callees(self) {
		const t = newTree();
		const step = 2 + data.sides;

		for (let i = 0; i < data.nodes.length; i += step)
			addNode(t, data.nodes[i], data.nodes[i + 1], self ? self[i / step] : data.nodes[i + 2], data.sides > 1 ? data.nodes[i + 3] : 0);
		return finish(t);
	}

	// The samples of each node in the slices from @first to before @last.
	function selfIn(first, last) {
		const self = new Array(data.nodes.length / (2 + data.sides)).fill(0);

		for (const slice of data.slices.of.slice(first, last)) for (let i = 0; i < slice.length; i += 2) self[slice[i]] += slice[i + 1];
		return self;
	}

	// The same stacks from their innermost frames outwards.
	function callers(of) {
		const root = { children: new Map(), sum: [0, 0], self: [0, 0] };
		const t = newTree();

		for (let i = 1; i < of.frame.length; i++) {
			let node = root;

			if (!of.self[0][i] && !of.self[1][i]) continue;
			for (let at = i; at > 0; at = of.parent[at]) {
				let next = node.children.get(of.frame[at]);

				if (!next) {
					next = { children: new Map(), sum: [0, 0], self: [0, 0] };
					node.children.set(of.frame[at], next);
				}
				node = next;
				for (let side = 0; side < 2; side++) node.sum[side] += of.self[side][i];
			}
			for (let side = 0; side < 2; side++) node.self[side] += of.self[side][i];
		}
		const size = (node) => node.sum[0] / (of.total[0][0] || 1) + node.sum[1] / (of.total[1][0] || 1);
		const left = [[root, 0, 0]];
		while (left.length) {
			const [node, depth, frame] = left.pop();

			addNode(t, depth, frame, node.self[0], node.self[1]);
			for (const [f, child] of [...node.children].sort((a, b) => size(a[1]) - size(b[1]))) left.push([child, depth + 1, f]);
		}
		return finish(t);
	}

	function start() {
		const trees = [callees(), null];
		const name = (i) => (i ? data.frames[t.frame[i]][0] : "all samples");
		const object = (i) => (i ? data.frames[t.frame[i]][1] : "");
		const label = (i) => (i ? data.frames[t.frame[i]][2] || name(i) : name(0));
		let t = trees[0];
		let zoomed = 0;
		let focused = 0;
		let hits = null; // of each frame, while there is a search
		let drawn = []; // nodes, in their order
		const before = []; // what was zoomed to

		const placeStrip = data.slices ? timeline() : null;
		const tools = make("div", "flame-tools", section);
		const box = make("input", "", tools);
		const found = make("output", "dim", tools);
		const turn = make("button", "", tools, "Callers");
		const reset = make("button", "", tools, "Whole graph");
		const details = make("div", "details", section);
		const graph = make("div", "graph", section);
		const help = make("p", "", section);

		section.classList.toggle("two", data.sides > 1);
		box.type = "search";
		box.placeholder = "function or object, or /expression/";
		box.setAttribute("aria-label", "search the flame graph");
		turn.setAttribute("aria-pressed", "false");
		turn.title = "from the innermost functions outwards";
		details.setAttribute("aria-live", "polite");
		graph.tabIndex = 0;
		graph.setAttribute("role", "tree");
		graph.setAttribute("aria-label", "flame graph");
		help.textContent =
			"Click or Enter: zoom. Escape: back. Arrows: go to another frame. /: search." +
			(data.sides > 1
				? ` Red has a greater share after, blue before; grey ${data.sampled ? "differs by chance at most" : "has the same"}. Widths are the mean of both shares.`
				: " Callers are above what they call.");

		// A strip of the samples by time, below the call that is zoomed to, which may be a thread: the graph shows
		// those of the span that is chosen.
		function timeline() {
			const { ns, of } = data.slices;
			const step = ns / 1e9;
			let sums = [];
			const seconds = (t) => `${Number(t.toFixed(3))} s`;
			let span = [0, of.length];
			const place = makeStrip(section, {
				extent: () => [0, of.length * step],
				step: () => step,
				bars: () => sums.map((n, k) => [k * step, step, n]),
				spans: () => [span.map((k) => k * step)],
				active: () => 0,
				text: seconds,
				choose(_, since, until) {
					const [from, to] = [Math.min(since, until), Math.max(since, until)].map((t) => t / step);

					span = [Math.min(Math.floor(from + 1e-6), of.length - 1), 0];
					span[1] = Math.max(Math.ceil(to - 1e-6), span[0] + 1);
					rebuild(span[0] || span[1] < of.length ? selfIn(...span) : undefined);
				},
			});
			const said = make("output", "dim said", section);

			// Callers are numbered as the graph has them, not as the slices do.
			function shown() {
				const [first, end] = t === trees[0] ? [zoomed, t.end[zoomed]] : [0, Infinity];
				const below = (slice) => slice.reduce((sum, n, i) => sum + (i % 2 && slice[i - 1] >= first && slice[i - 1] < end ? n : 0), 0);
				const whose = first ? ` of ${label(first)}` : "";

				sums = of.map(below);
				const n = sums.slice(...span).reduce((a, b) => a + b, 0);
				said.textContent = `${seconds(span[0] * step)} to ${seconds(span[1] * step)}: ${n.toLocaleString("en")} samples${whose}. Drag to choose a time.`;
				place();
			}
			return shown;
		}

		// Shows the same part of the graph, with other samples.
		function rebuild(self) {
			const turned = t !== trees[0];

			trees[0] = callees(self);
			trees[1] = turned ? callers(trees[0]) : null;
			t = trees[turned ? 1 : 0];
			if (turned) before.length = zoomed = focused = 0;
			search();
			show(focused);
		}

		const percent = (a, b) => `${(b ? (100 * a) / b : 0).toFixed(2)} %`;
		const count = (n) => n.toLocaleString("en");

		// One side: samples, share, time.
		function side(k, i) {
			const [n, self, all] = [t.total[k][i], t.self[k][i], t.total[k][0]];
			const time = data.tick_ns[k] ? `, ${((n * data.tick_ns[k]) / 1e9).toFixed(3)} s` : "";
			const own = trees[0] === t ? `; self ${count(self)}, ${percent(self, all)}` : "";
			const part = zoomed ? `, ${percent(n, t.total[k][zoomed])} of what is shown` : "";

			return `${count(n)} samples, ${percent(n, all)}${part}${time}${own}`;
		}

		function show(i) {
			const from = object(i) ? ` (${object(i)})` : "";

			details.replaceChildren();
			make("b", "", details, name(i) + from);
			if (data.sides < 2) {
				make("span", "", details, side(0, i));
				return;
			}
			make("span", "", details, `before: ${side(0, i)}`);
			make("span", "", details, `after: ${side(1, i)}`);
			const [a, b] = [0, 1].map((k) => (100 * t.total[k][i]) / (t.total[k][0] || 1));
			make("span", "", details, `change: ${b < a ? "" : "+"}${(b - a).toFixed(2)} points${difference(i) || !data.sampled ? "" : ", which may be chance"}`);
		}

		// From -1, only before, to 1, only after; 0 where it may be chance. That is not known of sleeps, which depend on each other.
		function difference(i) {
			const [na, nb] = [t.total[0][0], t.total[1][0]];
			const [a, b] = [t.total[0][i] / na, t.total[1][i] / nb];
			const both = (t.total[0][i] + t.total[1][i]) / (na + nb);
			const error = Math.sqrt(both * (1 - both) * (1 / na + 1 / nb));
			// A normal deviate is beyond z with a probability below exp(-z * z / 2); as many are tried as there are calls.
			const least = Math.sqrt(2 * Math.log(t.parent.length / CHANCE));

			return na && nb && Math.abs(b - a) > (data.sampled ? least * error : 0) ? (b - a) / (a + b) : 0;
		}

		function hue(from) {
			if (data.languages.includes(from)) return 300;
			return from === data.program ? 24 : from === "[kernel]" ? 215 : hash(from) % 360;
		}

		function legend(p) {
			const of = (from, text) => make("span", "place", p, text).style.setProperty("--hue", hue(from));

			of(data.program, "the program");
			for (const language of data.languages) of(language, language);
			of("[kernel]", "the kernel");
			make("span", "", p, "any other colour: a library, each its own");
		}

		function colour(e, i) {
			const from = object(i);

			if (data.sides > 1) {
				const d = difference(i);

				e.classList.add(d > 0 ? "more" : d < 0 ? "less" : "same");
				e.style.setProperty("--by", `${Math.round(20 + 80 * Math.abs(d))}%`);
				return;
			}
			if (!from) return;
			e.classList.add("place");
			e.style.setProperty("--hue", hue(from));
			e.style.setProperty("--shade", `${(hash(name(i)) % 9) - 4}%`);
		}

		function frame(i, scale, width) {
			const above = i < zoomed;
			const wide = above ? width : t.width[i] * scale;
			const e = document.createElement("div");

			e.className = "frame";
			if (above) e.classList.add("above");
			e.dataset.node = i;
			e.id = `flame-${i}`;
			e.setAttribute("role", "treeitem");
			e.setAttribute("aria-level", t.depth[i] + 1);
			e.setAttribute("aria-label", `${label(i)}, ${percent(t.width[i], 1)}`);
			e.style.left = `${above ? 0 : (t.start[i] - t.start[zoomed]) * scale}px`;
			e.style.top = `${t.depth[i] * ROW}px`;
			e.style.width = `${Math.max(wide - (wide > 4 ? 1 : 0), 0.5)}px`;
			if (wide >= LEAST_TEXT) e.textContent = label(i);
			if (hits && i) e.classList.add(hits[t.frame[i]] ? "hit" : "miss");
			colour(e, i);
			return e;
		}

		function narrow(rest, i) {
			const last = rest[rest.length - 1];

			if (last && last.next === i && last.parent === t.parent[i]) {
				last.n++;
				last.width += t.width[i];
				last.next = t.end[i];
			} else rest.push({ first: i, parent: t.parent[i], next: t.end[i], n: 1, width: t.width[i] });
		}

		// A box for what is too narrow: it says how much that is.
		function sum(r, scale) {
			const e = document.createElement("div");
			const words = `${count(r.n)} more`;

			e.className = "narrow";
			e.style.left = `${(t.start[r.first] - t.start[zoomed]) * scale}px`;
			e.style.top = `${t.depth[r.first] * ROW}px`;
			e.style.width = `${Math.max(r.width * scale - 1, 0.5)}px`;
			e.title = `${words}, ${percent(r.width, 1)} together: each is too narrow to be drawn; zoom, or see the table`;
			if (r.width * scale >= LEAST_TEXT) e.textContent = words;
			return e;
		}

		function draw() {
			const width = graph.clientWidth;
			const scale = width / (t.width[zoomed] || 1);
			const all = document.createDocumentFragment();
			const rest = []; // neighbours that are too narrow to be drawn
			let rows = 0;

			drawn = [];
			for (let at = zoomed; at > 0; at = t.parent[at]) drawn.unshift(t.parent[at]);
			for (let i = zoomed; i < t.end[zoomed]; ) {
				const fits = t.width[i] * scale >= NARROWEST;

				if (fits) drawn.push(i);
				else if (t.width[i] > 0) narrow(rest, i);
				i = fits ? i + 1 : t.end[i];
			}
			for (const r of rest) if (r.width * scale >= NARROWEST_SUM) all.append(sum(r, scale));
			for (const i of drawn) {
				all.append(frame(i, scale, width));
				rows = Math.max(rows, t.depth[i] + 1);
			}
			const canvas = document.createElement("div");
			canvas.className = "frames";
			canvas.setAttribute("role", "presentation");
			canvas.style.height = `${rows * ROW}px`;
			canvas.append(all);
			graph.replaceChildren(canvas);
			if (placeStrip) placeStrip();
			reset.disabled = !zoomed;
			mark();
		}

		function mark() {
			const was = graph.querySelector(".focused");
			const e = document.getElementById(`flame-${focused}`);

			if (was) was.classList.remove("focused");
			if (!e) return;
			e.classList.add("focused");
			graph.setAttribute("aria-activedescendant", e.id);
		}

		function focus(i) {
			focused = i;
			mark();
			show(i);
			const e = document.getElementById(`flame-${i}`);
			if (e) e.scrollIntoView({ block: "nearest", inline: "nearest" });
		}

		// The address of the page says what is shown, so that it can be sent, and the browser's "back" works.
		const address = () => `#${t === trees[0] ? "zoom" : "callers"}=${zoomed}`;

		function zoom(i) {
			if (i !== zoomed) before.push(zoomed);
			zoomed = i;
			draw();
			focus(i);
			if (location.hash !== address() && (zoomed || location.hash)) location.hash = address();
		}

		function follow() {
			const to = /^#(zoom|callers)=(\d+)$/.exec(location.hash);

			if (!to || location.hash === address()) return;
			if ((to[1] === "callers") !== (t !== trees[0])) turn.onclick();
			if (Number(to[2]) < t.frame.length) zoom(Number(to[2]));
		}

		function back() {
			if (!before.length) return;
			zoomed = before.pop();
			draw();
			focus(focused);
			location.hash = address();
		}

		// The next frame of the same row, its widest call, or its caller; -1 where there is none.
		function neighbour(key) {
			const at = drawn.indexOf(focused);
			const step = key === "ArrowLeft" ? -1 : 1;

			if (key === "ArrowUp") return focused ? t.parent[focused] : -1;
			if (key === "ArrowDown") return at + 1 < drawn.length && t.parent[drawn[at + 1]] === focused && drawn[at + 1] ? drawn[at + 1] : -1;
			for (let k = at + step; k >= 0 && k < drawn.length; k += step) if (t.depth[drawn[k]] === t.depth[focused]) return drawn[k];
			return -1;
		}

		function key(event) {
			if (event.ctrlKey || event.altKey || event.metaKey) return;
			if (event.key.startsWith("Arrow")) {
				const next = neighbour(event.key);

				if (next >= 0) focus(next);
			} else if (event.key === "Enter" || event.key === " ") zoom(focused);
			else if (event.key === "Escape") back();
			else if (event.key === "Home") zoom(0);
			else return;
			event.preventDefault();
		}

		// What a text means: all words, or an expression between slashes; null where that is none.
		function meaning(text) {
			const words = text.toLowerCase().split(/\s+/).filter(Boolean);

			if (!/^\/.+\/$/.test(text)) return (where) => words.every((word) => where.toLowerCase().includes(word));
			try {
				const expression = new RegExp(text.slice(1, -1));

				return (where) => expression.test(where);
			} catch {
				return null;
			}
		}

		// A sample counts once, however many frames of its stack are found.
		function search() {
			const means = meaning(box.value.trim());
			const sum = [0, 0];
			let frames = 0;

			hits = null;
			found.textContent = "";
			if (box.value.trim() && means) {
				hits = data.frames.map((f) => means(`${f[0]} ${f[1]}`));
				frames = hits.filter(Boolean).length;
				for (let i = 1; i < t.frame.length; ) {
					const hit = hits[t.frame[i]];

					for (let k = 0; hit && k < 2; k++) sum[k] += t.total[k][i];
					i = hit ? t.end[i] : i + 1;
				}
				const share = (k) => `${count(sum[k])} samples, ${percent(sum[k], t.total[k][0])}`;
				found.textContent = `${count(frames)} functions: ${data.sides > 1 ? `before ${share(0)}; after ${share(1)}` : share(0)}`;
			} else if (!means) found.textContent = "no regular expression";
			draw();
		}

		function nodeOf(event) {
			const e = event.target.closest(".frame");

			return e ? Number(e.dataset.node) : -1;
		}

		graph.onclick = (event) => nodeOf(event) >= 0 && zoom(nodeOf(event));
		graph.onpointerover = (event) => nodeOf(event) >= 0 && show(nodeOf(event));
		graph.onpointerleave = () => show(focused);
		graph.onkeydown = key;
		/* "/" searches wherever the focus is, except where it is typed. */
		document.addEventListener("keydown", (event) => {
			if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, textarea, select")) return;
			event.preventDefault();
			graph.scrollIntoView({ block: "nearest" });
			box.focus();
		}, { signal: gone.signal });
		box.oninput = search;
		box.onkeydown = (event) => {
			if (event.key === "Escape") {
				box.value = "";
				search();
				graph.focus();
			} else if (event.key === "Enter") graph.focus();
		};
		reset.onclick = () => zoom(0);
		turn.onclick = () => {
			const turned = t === trees[0];

			trees[1] = trees[1] || callers(trees[0]);
			t = trees[turned ? 1 : 0];
			turn.setAttribute("aria-pressed", String(turned));
			before.length = 0;
			zoomed = focused = 0;
			search();
			show(0);
		};
		let width = graph.clientWidth;
		const observer = new ResizeObserver(() => {
			if (graph.clientWidth !== width) draw();
			width = graph.clientWidth;
		});
		observer.observe(graph);
		if (data.sides < 2) legend(make("p", "legend", section));
		draw();
		show(0);
		window.addEventListener("hashchange", follow, { signal: gone.signal });
		follow();

		// The frames from the root to the zoomed one, and the search, which hold in another graph as well.
		const names = (i) => (i ? [...names(t.parent[i]), `${name(i)}\n${object(i)}`] : []);
		const child = (of, wanted) => {
			for (let i = of + 1; i < t.end[of]; i = t.end[i]) if (names(i).at(-1) === wanted) return i;
			return -1;
		};
		return {
			state: () => ({ path: names(zoomed), turned: t !== trees[0], text: box.value }),
			restore(state) {
				let at = 0;

				if (state.turned) turn.onclick();
				for (const wanted of state.path) {
					const next = child(at, wanted);
					if (next < 0) break;
					at = next;
				}
				box.value = state.text;
				if (at) zoom(at);
				if (state.text) search();
			},
			stop() {
				gone.abort();
				observer.disconnect();
			},
		};
	}

	return start();
}

const flames = [...document.querySelectorAll(".flame")].map(drawFlame);
