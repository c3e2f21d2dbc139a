// strip.js - a strip of time, on which spans are chosen by mouse, touch or keyboard
"use strict";

// Adds a strip to @parent. @of has extent() and step(); bars(): [start, length, value], whose value is undefined where it
// is not known; spans(): [since, until], one or two; active(): which of them a drag chooses; text(t); and
// choose(k, since, until, going), where @going says that more will follow. Returns what shows them anew.
function makeStrip(parent, of) {
	function make(tag, into, properties) {
		const e = Object.assign(document.createElement(tag), properties);

		into.append(e);
		return e;
	}

	const strip = make("div", parent, { className: "timeline" });
	const canvas = make("canvas", strip, {});
	const sliders = [0, 1].map((k) => ["from", "to"].map((end) => make("input", strip, { type: "range", className: `side-${k}`, id: `span-${k}-${end}` })));
	let start = null; // the time at which a drag began

	// The means of the values, as bars of two pixels; what is not known is a line at the bottom.
	function draw() {
		const [first, end] = of.extent();
		const style = getComputedStyle(strip);
		const ratio = window.devicePixelRatio || 1;
		const [width, height] = [strip.clientWidth, canvas.clientHeight];
		const bars = Math.max(1, Math.floor(width / 2));
		const sum = Array.from({ length: bars }, () => [0, 0, 0]);
		const x = (t) => ((t - first) / (end - first)) * width;
		const paint = canvas.getContext("2d");

		for (const [begin, length, value] of of.bars()) {
			const [from, to] = [begin, begin + length].map((t) => Math.floor(x(t) / 2));

			for (let i = Math.max(0, from); i <= Math.min(bars - 1, Math.max(from, to - 1)); i++) {
				sum[i][0] += value || 0;
				sum[i][1] += value === undefined ? 0 : 1;
				sum[i][2]++;
			}
		}
		const most = Math.max(0.1, ...sum.map(([value, n]) => (n ? value / n : 0)));
		canvas.width = width * ratio;
		canvas.height = height * ratio;
		paint.scale(ratio, ratio);
		of.spans().forEach(([since, until], k) => {
			paint.fillStyle = style.getPropertyValue(`--side-${k}`);
			paint.fillRect(x(since), 0, Math.max(2, x(until) - x(since)), height);
		});
		paint.fillStyle = style.getPropertyValue("--bar");
		sum.forEach(([value, n, all], i) => {
			const tall = n ? Math.max(1, (value / n / most) * (height - 4)) : 1;

			if (all) paint.fillRect(2 * i, height - tall, 2, tall);
		});
	}

	function place() {
		const [first, end] = of.extent();
		const spans = of.spans();

		sliders.forEach((pair, k) => pair.forEach((slider, i) => {
			const value = spans[k] ? spans[k][i] : 0;

			Object.assign(slider, { min: first, max: end, step: of.step(), hidden: !spans[k] });
			slider.value = value;
			slider.setAttribute("aria-label", `${["", "before: "][k]}${["from", "to"][i]}`);
			slider.setAttribute("aria-valuetext", of.text(value));
		}));
		draw();
	}

	function time(event) {
		const [first, end] = of.extent();
		const box = canvas.getBoundingClientRect();

		return Math.min(end, Math.max(first, first + ((event.clientX - box.left) / box.width) * (end - first)));
	}

	canvas.onpointerdown = (event) => {
		start = time(event);
		canvas.setPointerCapture(event.pointerId);
	};
	canvas.onpointermove = (event) => {
		const [first, end] = of.extent();

		if (start !== null && Math.abs(time(event) - start) > (end - first) / 1000) of.choose(of.active(), start, time(event), true);
	};
	canvas.onpointerup = (event) => {
		if (start !== null) of.choose(of.active(), start, time(event), false);
		start = null;
	};
	canvas.onpointercancel = () => (start = null);
	sliders.forEach((pair, k) => pair.forEach((slider, i) => {
		slider.oninput = () => {
			const ends = of.spans()[k].slice();

			ends[i] = Number(slider.value);
			if (ends[0] >= ends[1]) ends[1 - i] = ends[i] + (i ? -of.step() : of.step());
			of.choose(k, ends[0], ends[1], true);
		};
	}));
	new ResizeObserver(draw).observe(strip);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
	return place;
}
