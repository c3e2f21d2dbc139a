// page.js - search and sort in the table of a page; without it the page can be read as well
"use strict";

// Makes a table with its tools work.
function drawTable(table) {
	const tools = table.previousElementSibling;
	const body = table.tBodies[0];
	const headings = [...table.tHead.rows[0].cells];
	const rows = [...body.rows].filter((row) => !row.classList.contains("rest"));
	const rest = [...body.rows].filter((row) => row.classList.contains("rest"));
	const found = tools.querySelector("output");
	const total = Number(table.dataset.total || 0); // of samples; 0: the table has shares only

	// A number where the cell has one, else its text.
	function value(row, column) {
		const cell = row.cells[column];

		return cell.dataset.v === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.v);
	}

	function compare(a, b) {
		return a < b ? -1 : a > b ? 1 : 0;
	}

	// Numbers begin with the greatest, names with the first. What was summed up stays at the end.
	function sort(column) {
		const was = headings[column].getAttribute("aria-sort");
		const ascending = was ? was === "descending" : typeof value(rows[0], column) === "string";

		rows.sort((a, b) => compare(value(a, column), value(b, column)) * (ascending ? 1 : -1));
		headings.forEach((heading) => heading.removeAttribute("aria-sort"));
		headings[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
		body.append(...rows, ...rest);
	}

	// Shows the rows that have all words in their function or object.
	function search(text) {
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		let n = 0;
		let samples = 0;

		for (const row of rows) {
			const titles = [...row.querySelectorAll("[title]")].map((cell) => cell.title);
			const where = `${titles.join(" ")} ${row.textContent}`.toLowerCase();

			row.hidden = !words.every((word) => where.includes(word));
			n += !row.hidden;
			samples += row.hidden ? 0 : Number(row.querySelector(".samples").dataset.v);
		}
		rest.forEach((row) => (row.hidden = words.length > 0));
		found.textContent = words.length
			? `${n} of ${rows.length}${total ? `: ${samples} samples, ${((100 * samples) / total).toFixed(2)} %` : ""}`
			: "";
	}

	headings.forEach((heading, column) => {
		const button = document.createElement("button");

		button.textContent = heading.textContent;
		button.onclick = () => sort(column);
		heading.replaceChildren(button);
	});
	tools.querySelector("input").oninput = (event) => search(event.target.value);
}

document.querySelectorAll(".tools + table").forEach(drawTable);
document.body.classList.add("scripted");
