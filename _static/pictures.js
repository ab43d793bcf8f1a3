/* Pictures that a reader can change, each in the place of a static figure.

   `rubricnb.book.tables.playable` writes <div class="picture" data-name="…" data-figure="…"> with the
   recorded numbers as JSON; the function of that name draws them. The static figure stays in the
   page for paper and for readers without scripts. Controls are native buttons; arrow keys work
   within a group of them, and each change is said in an <output>. */
(() => {
  "use strict";

  const pictures = { square, panel, matrix };

  // After explorables.js, whose class gives the box its look.
  window.addEventListener("load", () => {
    for (const root of document.querySelectorAll(".picture")) {
      const figure = document.getElementById(root.dataset.figure.replaceAll("_", "-"));
      if (!figure) continue;
      const data = JSON.parse(root.querySelector("script").textContent);
      root.replaceChildren();
      root.classList.add("explorable");
      figure.classList.add("played");
      figure.prepend(root);
      pictures[root.dataset.name](root, data);
    }
  });

  /* Orders of a rubric are added one by one: how often is each score in each position, and what
     do two judges choose that differ in nothing but the reason? */
  function square(root, { orders, judges }) {
    const n = orders[0].length;
    let next = 0; // index of the order that is added next: n forward ones, then n backward ones
    let asked = [0];
    const tiles = element("p", { class: "tiles" });
    const turn = (by) => { next = n * Math.floor(next / n) + (next % n + by + n) % n; };
    const reverse = () => { next = orders.findIndex((o) => String(o) === String([...orders[next]].reverse())); };
    const act = (change) => () => { change(); update(); };
    const buttons = [
      button("Rotate", act(() => turn(1))),
      button("Reverse", act(reverse)),
      button("Add this order", act(() => asked.push(next))),
      button("Remove the last", act(() => asked.pop())),
      button(`All ${2 * n}`, act(() => { asked = orders.map((_, i) => i); })),
      button("Start again", act(() => { [next, asked] = [0, [0]]; })),
    ];
    const rows = figure(`The orders asked, from the first position to the last`, 240, 34 + 24 * 2 * n);
    const counts = figure("How often each score has been in each position", 240, 274);
    const shares = figure("Share of reads in which each of two judges chooses each position", 300, 274);
    const said = output();
    root.append(element("div", { class: "controls" }, tiles, ...buttons),
      element("div", { class: "side" }, rows, counts, shares), said);
    arrows(buttons, 1);
    update();

    function update() {
      tiles.replaceChildren("Next order: ", ...orders[next].map((s) => element("b", {}, s)));
      buttons[2].disabled = buttons[4].disabled = asked.length === 2 * n;
      buttons[3].disabled = asked.length === 1;
      const step = 200 / n;
      const heads = (y, text) => [svg("text", { x: 140, y: 14, "text-anchor": "middle" }, text),
        ...range(n).map((p) => svg("text", { x: 40 + step * (p + 0.5), y, "text-anchor": "middle" }, p + 1))];
      rows.replaceChildren(...heads(32, "orders asked"), ...range(2 * n).flatMap((k) => range(n).flatMap((p) => {
        const score = k < asked.length ? orders[asked[k]][p] : null;
        const box = { x: 41 + step * p, y: 38 + 23.6 * k, width: step - 2, height: 21.6 };
        return [svg("rect", { ...box, class: score ? "bar" : "empty", style: score ? `opacity: ${0.1 + 0.4 * score / n}` : "" }),
          svg("text", { x: 40 + step * (p + 0.5), y: 54 + 23.6 * k, "text-anchor": "middle" }, score || "")];
      })));
      const table = range(n).map((s) => range(n).map((p) => asked.filter((k) => orders[k][p] === s + 1).length));
      const [least, most] = [Math.min(...table.flat()), Math.max(...table.flat())];
      counts.replaceChildren(...heads(32, "times in each position"), ...range(n).flatMap((s) => [
        svg("text", { x: 34, y: 42 + step * (s + 0.6), "text-anchor": "end" }, s + 1),
        ...range(n).flatMap((p) => [
          svg("rect", { x: 41 + step * p, y: 38 + step * s, width: step - 2, height: step - 2, class: table[s][p] ? "bar" : "empty",
            style: table[s][p] ? `opacity: ${0.12 + 0.4 * table[s][p] / most}` : "" }),
          svg("text", { x: 40 + step * (p + 0.5), y: 42 + step * (s + 0.6), "text-anchor": "middle" }, table[s][p]),
        ])]));
      const chosen = judges.map((j) => range(n).map((p) => mean(asked.map((k) => j.shares[k][p]))));
      const x = scale(0, n - 1, 52, 280);
      const top = Math.ceil(10 * Math.max(...judges.flatMap((j) => j.shares.flat()))) / 10;
      const y = scale(0, top, 236, 76);
      shares.replaceChildren(
        svg("line", { x1: 40, x2: 292, y1: y(1 / n), y2: y(1 / n), class: "rule even" }),
        ...[0, 1 / n, top].map((v) => svg("text", { x: 34, y: y(v) + 5, "text-anchor": "end" }, Math.round(100 * v))),
        ...range(n).map((p) => svg("text", { x: x(p), y: 254, "text-anchor": "middle" }, p + 1)),
        svg("text", { x: 166, y: 272, "text-anchor": "middle" }, "position"),
        svg("text", { x: 40, y: 14 }, "chosen, % of reads"),
        ...chosen.flatMap((line, j) => [
          svg("polyline", { points: line.map((v, p) => `${x(p)},${y(v)}`).join(" "), class: j ? "curve other" : "curve" }),
          ...line.map((v, p) => (j ? svg("circle", { cx: x(p), cy: y(v), r: 4, class: "mark" })
            : svg("rect", { x: x(p) - 6, y: y(v) - 6, width: 12, height: 12, class: "hollow" }))),
          svg("text", { x: 40, y: 36 + 19 * j }, `${j ? "●" : "□"} ${judges[j].name}`)]));
      const apart = Math.max(...range(n).map((p) => Math.abs(chosen[0][p] - chosen[1][p])));
      const percent = (v) => `${(100 * v).toFixed(0)}\u00a0%`;
      said.textContent = `${asked.length} ${asked.length === 1 ? "order" : "orders"} asked. ` + (least === most
        ? `Balanced: each score has been in each position ${least === 1 ? "once" : `${least} times`}. `
        : `Not balanced: scores have been in a position at least ${least} and at most ${most} times. `) +
        (apart < 0.005 ? "The two judges choose each position equally often: these orders cannot tell them apart."
          : `The first position is chosen in ${percent(chosen[0][0])} of reads by the judge that ${judges[0].name}, in ${percent(chosen[1][0])} by the judge that ${judges[1].name}.`);
    }
  }

  /* Judges are added to a panel one by one: what is their mean worth, and how well does it agree
     with people? Every panel was computed from the recording; here it is only looked up. */
  function panel(root, { judges, panels }) {
    let chosen = [];
    const last = judges.length - 1; // the judge that always gives the same score
    const toggles = judges.map((judge, k) => button("", () => {
      const had = chosen.length;
      chosen = chosen.includes(k) ? chosen.filter((c) => c !== k) : [...chosen, k];
      update(chosen.length > had ? k : null);
    }));
    const presets = [
      button(`All ${last}`, () => { chosen = range(last); update(null); }),
      button("Start again", () => { chosen = []; update(null); }),
    ];
    const plot = figure("Number of judges with independent errors that the panel is worth, and its agreement with people, by number of judges", 420, 430);
    const said = output();
    root.append(element("div", { class: "columns" }, element("div", {},
      element("p", {}, "Add judges to a panel. In brackets: on how many of the four criteria the judge passes the test."),
      element("div", { class: "toggles" }, ...toggles), element("div", { class: "controls" }, ...presets)), plot), said);
    arrows(toggles, 2);
    update(null);

    /* r, its interval; worth, its interval; of the judges chosen, whose bits are the index. */
    function look(members) {
      const known = panels[members.filter((k) => k < last).reduce((bits, k) => bits + 2 ** k, 0)];
      if (!known) return { r: [null], worth: [1] };
      return { r: known.slice(0, 3), worth: members.includes(last) ? known.slice(6) : known.slice(3, 6) };
    }

    function update(added) {
      toggles.forEach((toggle, k) => {
        toggle.setAttribute("aria-pressed", chosen.includes(k));
        toggle.textContent = `${chosen.includes(k) ? "✓" : "+"} ${judges[k].name} (${judges[k].passes})`;
      });
      const path = chosen.map((_, k) => look(chosen.slice(0, k + 1)));
      const x = scale(1, judges.length, 44, 400);
      const worth = scale(0, 4, 236, 30);
      const r = scale(0, 1, 400, 290);
      const marks = (name, y) => path.flatMap((p, k) => (p[name][0] === null ? [] : [
        ...(p[name][1] == null ? [] : [svg("line", { x1: x(k + 1), x2: x(k + 1), y1: y(p[name][1]), y2: y(p[name][2]), class: "curve" })]),
        svg("circle", { cx: x(k + 1), cy: y(p[name][0]), r: k === path.length - 1 ? 7 : 4, class: "mark" })]))
        .concat(svg("polyline", { class: "curve other", points: path.map((p, k) => [p[name][0], k]).filter(([v]) => v !== null)
          .map(([v, k]) => `${x(k + 1)},${y(v)}`).join(" ") }));
      const ticks = (values, y) => values.flatMap((v) => [svg("text", { x: 34, y: y(v) + 5, "text-anchor": "end" }, v),
        svg("line", { x1: 40, x2: 408, y1: y(v), y2: y(v), class: "rule" })]);
      plot.replaceChildren(...ticks([0, 1, 2, 3, 4], worth), ...ticks([0, 0.5, 1], r),
        svg("line", { x1: x(1), x2: x(4), y1: worth(1), y2: worth(4), class: "rule even" }),
        svg("text", { x: 0, y: 14 }, "independent judges they are worth"),
        svg("text", { x: x(4) + 8, y: 44 }, "dotted: independent errors"),
        svg("text", { x: 0, y: 276 }, "agreement of their mean with people, r"),
        ...[1, 4, 8, 12].map((k) => svg("text", { x: x(k), y: 424, "text-anchor": "middle" }, k)),
        ...marks("worth", worth), ...marks("r", r));
      if (!path.length) {
        said.textContent = "No judge chosen yet. Guess first: how many independent judges are all eleven worth?";
        return;
      }
      const now = path.at(-1);
      const number = (v) => v.toFixed(2).replace("-", "−");
      const told = ([v, low, high]) => number(v) + (low == null ? "" : ` [${number(low)}, ${number(high)}]`);
      const before = added === null ? null : look(chosen.slice(0, -1));
      said.textContent = `${chosen.length} ${chosen.length === 1 ? "judge is" : "judges are"} worth ${told(now.worth)} with independent errors. ` +
        (now.r[0] === null ? "A score that is always the same has no correlation with people." : `Their mean agrees with people at r = ${told(now.r)}.`) +
        (added === last && chosen.length > 1 ? ` The constant judge cannot change r, because it does not tell texts apart; it changed the worth by ${signed(now.worth[0] - before.worth[0])}.`
          : added !== null && chosen.length > 1 && before.r[0] !== null ? ` ${judges[added].name} changed r by ${signed(now.r[0] - before.r[0])}.` : "");
    }
  }

  /* Judges and datasets against findings: a cell tells its evidence. */
  function matrix(root, { views }) {
    const signs = { replicates: "+", "does not": "−", inconclusive: "?" };
    const said = output();
    const table = element("table");
    const tabs = views.map((view, k) => button(view.name, () => draw(k)));
    root.append(element("div", { class: "controls" }, ...tabs),
      element("p", {}, "+ replicates, − does not, ? inconclusive. Choose a cell to see its evidence."),
      element("div", { class: "columns" }, table, said));
    arrows(tabs, 1);
    draw(0);

    function draw(k) {
      const { findings, cells } = views[k];
      const keys = [];
      tabs.forEach((tab, other) => tab.setAttribute("aria-pressed", other === k));
      const key = (cell, finding) => {
        const open = () => show(keys, node, cell, finding);
        const node = button(signs[cell.verdict], open, `${finding.name}, ${cell.judge}, ${cell.texts}: ${cell.verdict}`);
        node.dataset.verdict = cell.verdict;
        node.addEventListener("focus", open);
        keys.push(node);
        return node;
      };
      const unique = (list, name) => [...new Set(list.map((cell) => cell[name]))];
      const row = (judge, texts) => element("tr", {}, element("th", { scope: "row" }, texts), ...findings.map((finding) => {
        const cell = judge.find((c) => c.texts === texts && c.finding === finding.name);
        return element("td", {}, cell ? key(cell, finding) : "");
      }));
      const heads = findings.map((f) => element("th", { scope: "col" }, element("span", {}, f.name)));
      table.replaceChildren(element("thead", {}, element("tr", {}, element("td"), ...heads)),
        ...unique(cells, "judge").map((name) => {
          const judge = cells.filter((cell) => cell.judge === name);
          return element("tbody", {}, element("tr", {}, element("th", { colspan: findings.length + 1, scope: "rowgroup" }, name)),
            ...unique(judge, "texts").map((texts) => row(judge, texts)));
        }));
      if (!keys.length) return;
      arrows(keys);
      keys[0].click();
    }

    function show(keys, node, cell, finding) {
      keys.forEach((other) => other.setAttribute("aria-pressed", other === node));
      const lines = { Claim: finding.claim, "Measured as": finding.measure, Estimate: cell.estimate,
        Verdict: cell.verdict + cell.tested, Control: finding.control, "Asked about": cell.asked };
      said.replaceChildren(element("strong", {}, `${finding.name}: ${cell.judge} on ${cell.texts}`),
        ...Object.entries(lines).filter(([, text]) => text).map(([term, text]) =>
          element("span", {}, element("b", {}, `${term}: `), text)),
        element("a", { href: finding.href }, finding.chapter));
    }
  }

  /* Controls and drawing -------------------------------------------------------------------------- */

  /* Arrow keys move the focus among buttons, in a row or in columns; without columns, to the nearest
     one in a table, which is one stop of the tab key. */
  function arrows(buttons, columns = 0) {
    const stop = (chosen) => { if (!columns) buttons.forEach((b) => { b.tabIndex = b === chosen ? 0 : -1; }); };
    const after = (key, [right, down]) => {
      if (columns) {
        const by = right + columns * down;
        let next = buttons.indexOf(key) + by;
        while (buttons[next]?.disabled) next += by;
        return buttons[next] || key;
      }
      const at = key.getBoundingClientRect();
      const away = (b) => {
        const { x, y } = b.getBoundingClientRect();
        const [dx, dy] = [x - at.x, y - at.y];
        const [ahead, aside] = right ? [dx * right, Math.abs(dy)] : [dy * down, Math.abs(dx)];
        return ahead < 2 ? Infinity : ahead + 20 * aside;
      };
      return buttons.reduce((best, b) => (away(b) < away(best) ? b : best), key);
    };
    stop(buttons[0]);
    buttons.forEach((key) => {
      key.addEventListener("focus", () => stop(key));
      key.addEventListener("keydown", (event) => {
        const to = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!to) return;
        event.preventDefault();
        after(key, to).focus();
      });
    });
  }

  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  function svg(name, attributes = {}, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(text);
    return node;
  }

  function figure(label, width, height) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  }

  function button(text, act, label) {
    const node = element("button", { type: "button", ...(label ? { "aria-label": label } : {}) }, text);
    node.addEventListener("click", act);
    return node;
  }

  function output() { return element("output", { "aria-live": "polite" }); }
  function range(n) { return [...Array(n).keys()]; }
  function mean(values) { return values.reduce((a, b) => a + b, 0) / values.length; }
  function signed(value) { return `${value < -0.004 ? "−" : "+"}${Math.abs(value).toFixed(2)}`; }
  function scale(from, to, start, end) {
    return (v) => start + ((v - from) / (to - from || 1)) * (end - start);
  }
})();
