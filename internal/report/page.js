"use strict";
(() => {
	const form = document.getElementById("filter");
	if (!form) return;
	const shown = document.getElementById("shown");
	const sections = [...document.querySelectorAll(".verdict-section")].map(element => ({
		element,
		number: element.querySelector(".number"),
		outcomes: [...element.querySelectorAll(".outcome")].map(element => ({element, text: null})),
	}));
	const total = sections.reduce((sum, section) => sum + section.outcomes.length, 0);
	const words = text => text.toLowerCase().split(/\s+/).filter(Boolean);

	// read returns the filter of the form.
	function read() {
		const data = new FormData(form);
		return {
			text: words(data.get("text")), area: data.get("area"), behaviour: data.get("behaviour").trim().toLowerCase(),
			verdict: data.getAll("verdict"), level: data.getAll("level"),
		};
	}

	// matches reports whether an outcome is shown.
	function matches(outcome, filter) {
		const is = outcome.element.dataset;
		if (filter.verdict.length && !filter.verdict.includes(is.verdict)) return false;
		if (filter.level.length && !filter.level.includes(is.level)) return false;
		if (filter.area && is.area !== filter.area) return false;
		if (filter.behaviour && !words(is.behaviours || "").some(id => id.startsWith(filter.behaviour))) return false;
		if (!filter.text.length) return true;
		outcome.text ??= outcome.element.textContent.toLowerCase();
		return filter.text.every(word => outcome.text.includes(word));
	}

	// apply shows the outcomes that match the form.
	function apply() {
		const filter = read();
		let all = 0;
		for (const section of sections) {
			let some = 0;
			for (const outcome of section.outcomes) {
				const match = matches(outcome, filter);
				outcome.element.hidden = !match;
				if (match) some++;
			}
			section.element.hidden = some === 0;
			section.number.textContent = some === section.outcomes.length ? some : some + " of " + section.outcomes.length;
			all += some;
		}
		shown.textContent = all + " of " + total + " shown";
	}

	// written is the fragment that write has written. An event for an earlier one can come later.
	let written = null;

	// write puts the filter of the form into the fragment of the URL.
	function write() {
		const fragment = new URLSearchParams();
		const filter = read();
		for (const name of ["verdict", "level"]) if (filter[name].length) fragment.set(name, filter[name].join(","));
		if (filter.area) fragment.set("area", filter.area);
		if (filter.behaviour) fragment.set("behaviour", form.elements.behaviour.value.trim());
		if (filter.text.length) fragment.set("text", form.elements.text.value.trim());
		written = fragment.toString().replaceAll("%2C", ",");
		history.replaceState(null, "", written ? "#" + written : location.pathname + location.search);
	}

	// fill puts a filter into the form.
	function fill(fragment) {
		const given = new URLSearchParams(fragment);
		for (const name of ["text", "area", "behaviour"]) form.elements[name].value = given.get(name) ?? "";
		for (const name of ["verdict", "level"]) {
			const values = (given.get(name) ?? "").split(",");
			for (const box of form.querySelectorAll("input[name=" + name + "]")) box.checked = values.includes(box.value);
		}
	}

	// open shows one outcome, and returns whether there is one.
	function open(id) {
		const summary = document.getElementById(id);
		const outcome = summary?.closest(".outcome");
		if (!outcome) return false;
		if (outcome.hidden) fill("");
		apply();
		outcome.open = true;
		outcome.scrollIntoView();
		summary.focus({preventScroll: true});
		return true;
	}

	// follow does what the fragment says.
	function follow() {
		const raw = location.hash.slice(1);
		if (raw === written) return;
		let decoded = raw;
		try { decoded = decodeURIComponent(raw); } catch { /* not written by this page */ }
		if (raw.includes("=") && !decoded.startsWith("scenario/")) {
			fill(raw);
			apply();
			document.getElementById("outcomes").focus();
			return;
		}
		if (raw === "") fill("");
		if (!open(decoded)) apply();
		if (decoded.startsWith("scenario/") && !document.getElementById(decoded)) {
			shown.textContent = "This report has no scenario " + decoded.slice("scenario/".length) + ". " + shown.textContent;
		}
	}

	form.hidden = false;
	form.addEventListener("submit", event => event.preventDefault());
	form.addEventListener("input", () => { write(); apply(); });
	form.addEventListener("reset", event => { event.preventDefault(); fill(""); write(); apply(); });
	window.addEventListener("hashchange", follow);
	follow();
})();
