/* Explorables: small experiments inside a page, on the data that the page carries with it.

   `rubricnb.book.tables.explorable` writes <div class="explorable" data-name="…"> with the data as JSON
   and a sentence for readers without scripts; the function of that name below takes its place.
   Every control is a native one, so the keyboard works; what changed is said in an <output>. */
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const experiments = { winner, subsets, cost, cuts, labels, orders };

  const start = () => {
    for (const root of document.querySelectorAll(".explorable")) {
      const data = JSON.parse(root.querySelector("script").textContent);
      root.querySelector(".fallback").remove();
      experiments[root.dataset.name](root, data);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();

  /* Candidates of one prompt, a judge, and a preference for a position on top: who wins?
     A recorded judge brings its probabilities, by order and place; a simulated one has a formula. */
  function winner(root, { judges, orderings, sharpness }) {
    const n = orderings[0].length;
    let { candidates, truth } = judges[0];
    let [own, before] = [[], null];
    const draw = () => { own = candidates.map(() => Math.floor(Math.random() * orderings.length)); };
    draw();
    const judge = select("Judge", judges.map((j) => j.name), (i) => {
      ({ candidates, truth } = judges[i]);
      draw();
      before = null;
      update();
    });
    const preference = slider("Preference for a position, added to it", { min: -4, max: 4, step: 0.1, value: 0 },
      (v) => (+v === 0 ? "none" : `${Math.abs(v).toFixed(1)} for the ${v < 0 ? "first" : "last"} option`), update);
    const order = choice("Each candidate is read under", {
      same: "the same order, 1 to n", own: "an order of its own", all: "all orders of BALANCED" }, update);
    const score = choice("Its score is", {
      expected: "the expected score", argmax: "the most probable score" }, update);
    const again = button("Draw the orders again", () => { draw(); update(); });
    const plot = figure("The quality of each candidate and the score the judge gives it", 640, 210);
    const said = output();
    const key = element("p");
    root.append(group(judge, preference.node, order.node, score.node, again), key, plot, said);
    update();

    function probabilities(candidate, k) {
      const weights = orderings[k].map((s, p) => Math.exp(preference.value() * p / (n - 1)) *
        (candidate.reads ? candidate.reads[k][p] : Math.exp(-0.5 * sharpness * (s - candidate.quality) ** 2)));
      const total = sum(weights);
      return weights.map((w) => w / total);
    }

    function read(candidate, k) {
      const shares = probabilities(candidate, k);
      if (score.value() === "expected") return sum(shares.map((q, p) => q * orderings[k][p]));
      return orderings[k][shares.indexOf(Math.max(...shares))];
    }

    function update() {
      const under = { same: () => [0], own: (i) => [own[i]], all: () => range(orderings.length) }[order.value()];
      const scores = candidates.map((c, i) => mean(under(i).map((k) => read(c, k))));
      again.disabled = order.value() !== "own";
      key.textContent = `Hollow: ${truth}. Filled: the judge's score.`;
      const x = scale(1, n, 40, 620);
      const rows = candidates.map((c, i) => {
        const y = 26 + i * 34;
        return [
          svg("text", { x: 0, y: y + 5 }, c.name),
          svg("line", { x1: x(1), x2: x(n), y1: y, y2: y, class: "rule" }),
          svg("line", { x1: x(c.quality), x2: x(scores[i]), y1: y, y2: y, class: "shift" }),
          svg("circle", { cx: x(c.quality), cy: y, r: 6, class: "truth" }),
          svg("circle", { cx: x(scores[i]), cy: y, r: 6, class: "mark" }),
        ];
      });
      const ticks = range(n).map((s) => svg("text", { x: x(s + 1), y: 206, "text-anchor": "middle" }, s + 1));
      plot.replaceChildren(...rows.flat(), ...ticks);
      const names = (values) => {
        const best = Math.max(...values);
        return candidates.filter((_, i) => values[i] > best - 1e-9).map((c) => c.name).join(" and ");
      };
      const quality = candidates.map((c) => c.quality);
      const pairs = range(candidates.length).flatMap((i) => range(i).map((j) => [i, j]));
      const against = pairs.filter(([i, j]) => (quality[i] - quality[j]) * (scores[i] - scores[j]) < -1e-9).length;
      const tied = pairs.filter(([i, j]) => Math.abs(scores[i] - scores[j]) <= 1e-9).length;
      const now = { moved: preference.value(), scores: String(scores), ranks: String(pairs.map(([i, j]) => Math.sign(Math.round(1e9 * (scores[i] - scores[j]))))) };
      said.textContent = `The judge's winner: ${names(scores)}; the best candidate: ${names(quality)}. ` +
        `Of ${pairs.length} pairs ${against} ${against === 1 ? "is" : "are"} the wrong way round and ${tied} tied.` + why(now);
      before = now;
    }

    /* What to make of a move that has changed nothing. */
    function why(now) {
      if (!before || before.ranks !== now.ranks) return "";
      if (before.moved === now.moved) return " This changed no rank.";
      if (before.scores === now.scores) return " This changed no score, because no other score has become the most probable one.";
      return " This changed no rank, because " + {
        same: "all candidates are read in the same order, so their scores move together.",
        all: "every score stands in every place equally often, which takes the preference out of the ranking.",
        own: "no candidate has moved past another yet.",
      }[order.value()];
    }
  }

  /* K of the orderings, drawn at random: how well does their mean agree with people? */
  function subsets(root, { judges }) {
    const known = judges.filter((j) => Number.isFinite(agreement(range(j.reads[0].length), j)));
    if (!known.length) {
      root.append("There is nothing to correlate: all scores, or all ratings, are equal.");
      return;
    }
    let [shown, bySize, drawn] = [known[0]];
    let count = 0;
    const judge = select("Judge", known.map((j) => j.name), (i) => { take(known[i]); draw(); });
    const size = slider("Orderings averaged, K", { min: 1, max: shown.reads[0].length, step: 1, value: 1 }, (v) => v, () => draw());
    const again = button("Draw other orderings", () => draw());
    const plot = figure("Agreement with the human scores against the number of orderings averaged", 640, 272);
    const said = output();
    root.append(group(judge, size.node, again), plot, said);
    take(shown);
    draw();

    function take(j) {
      shown = j;
      count = j.reads[0].length;
      const all = range(2 ** count - 1).map((i) => range(count).filter((k) => ((i + 1) >> k) & 1));
      bySize = range(count).map((k) => all.filter((chosen) => chosen.length === k + 1)
        .map((chosen) => ({ chosen, r: agreement(chosen, j) })).filter((d) => Number.isFinite(d.r)));
      size.limit(count);
    }

    function agreement(chosen, { reads, human }) {
      return correlation(reads.map((row) => mean(chosen.map((k) => row[k]))), human);
    }

    function draw() {
      const cell = bySize[size.value() - 1];
      again.disabled = cell.length === 1;
      const others = cell.length === 1 ? cell : cell.filter((d) => d !== drawn);
      drawn = others[Math.floor(Math.random() * others.length)];
      const every = bySize.flat().map((d) => d.r);
      const x = scale(1, count, 60, 610);
      const y = scale(Math.min(...every), Math.max(...every), 215, 20);
      const low = bySize.map((c) => Math.min(...c.map((d) => d.r)));
      const high = bySize.map((c) => Math.max(...c.map((d) => d.r)));
      const middle = bySize.map((c) => mean(c.map((d) => d.r)));
      const line = (values) => values.map((v, k) => `${x(k + 1)},${y(v)}`).join(" ");
      plot.replaceChildren(
        svg("polygon", { points: `${line(low)} ${line([...high]).split(" ").reverse().join(" ")}`, class: "band" }),
        svg("polyline", { points: line(middle), class: "curve" }),
        svg("circle", { cx: x(size.value()), cy: y(drawn.r), r: 7, class: "mark" }),
        ...range(count).map((k) => svg("text", { x: x(k + 1), y: 238, "text-anchor": "middle" }, k + 1)),
        ...[Math.min(...every), Math.max(...every)].map((v) => svg("text", { x: 0, y: y(v) + 5 }, number(v))),
        svg("text", { x: 335, y: 266, "text-anchor": "middle" }, "orderings averaged, K"));
      const k = size.value();
      said.textContent = `Orderings ${drawn.chosen.map((i) => i + 1).join(", ")}: r with ${shown.what} = ${number(drawn.r)}. ` +
        `Over all ${cell.length} ways to choose ${k} of ${count}: ${number(low[k - 1])} to ${number(high[k - 1])}, ` +
        `on average ${number(middle[k - 1])}.` +
        (cell.length === 1 ? " There is nothing left to draw: all orderings are averaged. Other texts would still give another r." : "");
    }
  }

  /* The options of a rubric in an order of one's own, and the Bias Cost of it. */
  function cost(root, { tables }) {
    let table = tables[0];
    const n = table.shares.length;
    const every = permutations(range(n));
    let ordering = range(n);
    let before = null;
    const judge = select("Judge", tables.map((t) => t.judge), (i) => { table = tables[i]; update(); });
    const list = element("ol", { class: "options" });
    const to = (text, pick) => button(text, () => { ordering = [...pick()]; update(); });
    const ranked = () => [...every].sort((a, b) => costOf(a) - costOf(b));
    const plot = figure("Bias Cost of every ordering of the options, and of the chosen one", 640, 90);
    const said = output();
    root.append(group(judge, to("Cheapest", () => ranked()[0]), to("Dearest", () => ranked().at(-1)),
      to("1 to n", () => range(n))), list, plot, said);
    update();

    function costOf(order) {
      return 100 * sum(order.map((s, p) => Math.abs(table.shares[s][p] - 1 / n)));
    }

    function move(position, by) {
      const [option] = ordering.splice(position, 1);
      ordering.splice(position + by, 0, option);
      update();
      const buttons = list.children[position + by].querySelectorAll("button");
      const same = buttons[by < 0 ? 0 : 1];
      (same.disabled ? buttons[by < 0 ? 1 : 0] : same).focus();
    }

    function update() {
      list.replaceChildren(...ordering.map((s, p) => {
        const up = button("↑", () => move(p, -1), `Move score ${s + 1} up`);
        const down = button("↓", () => move(p, 1), `Move score ${s + 1} down`);
        up.disabled = p === 0;
        down.disabled = p === n - 1;
        const share = (100 * table.shares[s][p]).toFixed(1);
        return element("li", {}, `Score ${s + 1}`, up, down,
          element("span", {}, `of its choices ${share} % fall on position ${p + 1}`));
      }));
      const costs = every.map(costOf);
      const now = costOf(ordering);
      const x = scale(0, Math.max(...costs), 30, 610);
      plot.replaceChildren(
        svg("line", { x1: x(0), x2: x(Math.max(...costs)), y1: 50, y2: 50, class: "rule" }),
        ...costs.map((c) => svg("line", { x1: x(c), x2: x(c), y1: 38, y2: 62, class: "hair" })),
        svg("circle", { cx: x(now), cy: 50, r: 7, class: "mark" }),
        svg("text", { x: x(0), y: 86, "text-anchor": "middle" }, "0"),
        svg("text", { x: x(Math.max(...costs)), y: 86, "text-anchor": "middle" }, Math.max(...costs).toFixed(1)));
      const rank = 1 + costs.filter((c) => c < now - 1e-9).length;
      said.textContent = `${ordering.map((s) => s + 1).join("-")}: Bias Cost ${now.toFixed(1)}, ` +
        `place ${rank} of ${every.length} (cheapest ${Math.min(...costs).toFixed(1)}, dearest ${Math.max(...costs).toFixed(1)}).` + why(now);
      before = { table, order: String(ordering), now };
    }

    /* What to make of a move that has changed nothing. */
    function why(now) {
      if (!before || before.table !== table || before.now.toFixed(1) !== now.toFixed(1)) return "";
      if (before.order === String(ordering)) return " That is the order which stands here already.";
      return " This changed no cost, because the shares that count now are as far from even as those before.";
    }
  }

  /* Where a latent score becomes the next label: kappa and mean error of every choice. */
  function cuts(root, { latent, people, labels, maps }) {
    const [least, most] = [Math.min(...latent), Math.max(...latent)];
    const step = (most - least) / 200;
    let at = maps[0].cuts; // exact: sliders stand at the nearest step
    let before = "";
    const sliders = labels.slice(1).map((label, k) => slider(`${label} begins at z`,
      { min: least, max: most + step, step, value: maps[0].cuts[k] }, (v) => (+v).toFixed(2), () => push(k)));
    const presets = maps.map((map) => button(map.name, () => set(map.cuts)));
    const plot = figure("Latent scores of the texts by the label people gave, the cuts, and how often each label is given", 640, 60 + 34 * labels.length);
    const said = output();
    root.append(group(...presets), group(...sliders.map((s) => s.node)),
      element("p", {}, "Left: every text at its latent score, in the row of the label that people gave it; lines are the cuts. Right: how often people (hollow) and the map (filled) give each label."),
      plot, said);
    update();

    function set(values) {
      at = values;
      sliders.forEach((s, k) => s.set(at[k]));
      update();
    }

    /* A cut that is moved past its neighbours takes them along. */
    function push(moved) {
      const to = sliders[moved].value();
      set(at.map((cut, k) => (k < moved ? Math.min(cut, to) : k > moved ? Math.max(cut, to) : to)));
    }

    function update() {
      const given = latent.map((z) => labels[at.filter((cut) => z >= cut).length]);
      const x = scale(least, most, 24, 440);
      const y = (label) => 20 + 34 * (labels.length - 1 - labels.indexOf(label));
      const share = (list, label) => list.filter((v) => v === label).length / list.length;
      const widest = Math.max(...labels.flatMap((l) => [share(people, l), share(given, l)]));
      const bar = scale(0, widest, 0, 170);
      plot.replaceChildren(
        ...latent.map((z, i) => svg("line", { x1: x(z), x2: x(z), y1: y(people[i]) - 8, y2: y(people[i]) + 8, class: "hair" })),
        ...at.map((cut) => svg("line", { x1: x(Math.min(cut, most)), x2: x(Math.min(cut, most)), y1: 6, y2: 34 * labels.length, class: "shift" })),
        ...labels.flatMap((label) => [
          svg("text", { x: 0, y: y(label) + 5 }, label),
          svg("circle", { cx: 455 + bar(share(people, label)), cy: y(label) - 6, r: 6, class: "truth" }),
          svg("circle", { cx: 455 + bar(share(given, label)), cy: y(label) + 6, r: 6, class: "mark" }),
        ]),
        svg("text", { x: 232, y: 34 * labels.length + 34, "text-anchor": "middle" }, "latent score z"),
        svg("text", { x: 540, y: 34 * labels.length + 34, "text-anchor": "middle" }, "share of the texts"));
      const off = mean(given.map((v, i) => Math.abs(v - people[i])));
      said.textContent = `QWK ${number(kappa(given, people))}, mean error ${off.toFixed(3)}, ` +
        `right ${(100 * mean(given.map((v, i) => +(v === people[i])))).toFixed(0)} % of ${given.length} texts.` +
        (before === String(given) ? " This changed no label, because no text lies between the old place of a cut and the new one." : "");
      before = String(given);
    }
  }

  /* How many texts must people rate? The formulas of rb.labels_needed, and whole articles beside. */
  function labels(root, { cells, quantiles, width: wanted }) {
    const start = select("Start from", cells.map((c) => c.name), (i) => take(cells[i]));
    const points = (v) => `± ${(+v).toFixed(2)} points`;
    const plain = (v) => (+v).toFixed(2);
    const width = slider("Wanted: the mean within", { min: 0.05, max: 0.5, step: 0.01, value: wanted }, points, update);
    const r = slider("Judge's r with people", { min: 0, max: 0.95, step: 0.01, value: 0 }, plain, update);
    const sd = slider("Standard deviation of ratings", { min: 0.3, max: 1.6, step: 0.01, value: 1 }, plain, update);
    const texts = slider("Texts the judge has scored", { min: 50, max: 5000, step: 1, value: 50 },
      (v) => (+v).toLocaleString("en"), update);
    const shared = slider("Texts that share a prompt", { min: 1, max: 20, step: 1, value: 1 }, (v) => v, update);
    const alike = slider("How alike those are, beyond the judge", { min: 0, max: 0.5, step: 0.01, value: 0 }, plain, update);
    const all = [width, r, sd, texts, shared, alike];
    let before = null;
    const key = element("p", {}, "Half width of the 95 % interval, by how many texts people rate. " +
      "Filled: drawn singly, with the judge. Hollow: drawn singly, without it. Square: with it, all texts of some prompts. " +
      "Line across: what is wanted.");
    const plot = figure("Half width of the interval against the number of texts rated, with the judge and without", 640, 260);
    const said = output();
    root.append(group(start, ...all.map((s) => s.node)), key, plot, said);
    take(cells[0]);

    function take(cell) {
      r.set(cell.r);
      sd.set(cell.sd);
      texts.set(cell.n_items);
      shared.set(cell.shared);
      alike.set(Math.max(0, cell.alike));
      update();
    }

    /* 97.5 % quantile of Student's t: from a table, then Fisher's expansion. */
    function t(df) {
      if (df <= quantiles.length) return quantiles[df - 1];
      const z = 1.959963984540054;
      return z + (z ** 3 + z) / (4 * df) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * df ** 2) +
        (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * df ** 3);
    }

    function halfWidth(n, total, variance, lost) {
      const own = lost === 2 ? 1 + 1 / Math.max(n - 3, 1) : 1; // the regression's own uncertainty
      return t(n - lost) * Math.sqrt(variance * (1 - n / total) / n * own);
    }

    function ofClusters(g, total, variance, size, rho) {
      return t(g - 1) * Math.sqrt((1 - g / total) * variance * (1 + (size - 1) * rho) / size / (g - 2));
    }

    function smallest(from, total, enough) {
      for (let n = from; n <= total; n += 1) if (enough(n)) return n;
      return total;
    }

    function update() {
      const [h, total, size] = [width.value(), texts.value(), shared.value()];
      const people = sd.value() ** 2;
      const left = people * (1 - r.value() ** 2);
      const alone = smallest(3, total, (n) => halfWidth(n, total, people, 1) <= h);
      const judged = smallest(4, total, (n) => halfWidth(n, total, left, 2) <= h);
      const clusters = Math.floor(total / size);
      const g = smallest(3, clusters, (k) => ofClusters(k, clusters, left, size, alike.value()) <= h);
      const most = Math.min(total, Math.max(20, Math.ceil(1.3 * Math.max(alone, judged, size === 1 ? 0 : g * size))));
      const x = scale(0, most, 60, 610);
      const y = scale(0, 3 * h, 200, 12);
      const line = (points) => points.filter(([n, v]) => n <= most && v <= 3 * h)
        .map(([n, v]) => `${x(n)},${y(v)}`).join(" ");
      const ns = range(80).map((k) => Math.round(5 + (most - 5) * k / 79));
      const curve = (variance, lost) => line(ns.map((n) => [n, halfWidth(n, total, variance, lost)]));
      const whole = range(size === 1 ? 0 : Math.max(0, clusters - 2)).map((k) =>
        [(k + 3) * size, ofClusters(k + 3, clusters, left, size, alike.value())]);
      plot.replaceChildren(
        svg("line", { x1: x(0), x2: x(most), y1: y(h), y2: y(h), class: "shift" }),
        svg("polyline", { points: curve(people, 1), class: "curve" }),
        svg("polyline", { points: curve(left, 2), class: "curve" }),
        svg("polyline", { points: line(whole), class: "curve", "stroke-dasharray": "5 4" }),
        ...(size === 1 ? [] : [svg("rect", { x: x(g * size) - 5, y: y(h) - 5, width: 10, height: 10, class: "mark" })]),
        svg("circle", { cx: x(alone), cy: y(h), r: 6, class: "truth" }),
        svg("circle", { cx: x(judged), cy: y(h), r: 6, class: "mark" }),
        ...[0, h, 2 * h].map((v) => svg("text", { x: 0, y: y(v) + 5 }, v.toFixed(2))),
        ...[0, most / 2, most].map((n) => svg("text", { x: x(n), y: 224, "text-anchor": "middle" }, Math.round(n))),
        svg("text", { x: 335, y: 252, "text-anchor": "middle" }, "texts that people rate"));
      said.textContent = `For ${points(h)} people rate ${judged} texts with the judge and ${alone} without. ` +
        (size === 1 ? "No two texts share a prompt." : `Rating all ${size} texts of a prompt takes ${g} prompts with the judge: ${g * size} texts.`) + why([h, people, r.value(), total, size, alike.value()], [alone, judged, size === 1 ? 0 : g * size]);
    }

    /* What to make of a move that has changed nothing. */
    function why(setting, found) {
      const same = before && String(before.found) === String(found);
      const moved = same ? range(setting.length).filter((k) => setting[k] !== before.setting[k]) : [];
      before = { setting, found };
      if (moved.length !== 1) return "";
      const reason = [
        "the step is too small for a whole text", "the step is too small for a whole text", "the step is too small for a whole text",
        "so few of so many texts are rated that it hardly matters how many there are",
        "texts drawn singly do not ask who shares a prompt",
        setting[4] === 1 ? "no two texts share a prompt" : "the step is too small for a whole prompt, and texts drawn singly do not ask",
      ][moved[0]];
      return ` This changed no number, because ${reason}.`;
    }
  }

  /* One text under every order of its rubric: the reader guesses its score, then tries the orders. */
  function orders(root, { judge, question, answer, criterion, levels, named, scores, probabilities }) {
    const n = levels.length;
    const every = Object.keys(scores).sort((a, b) => scores[a] - scores[b] || a.localeCompare(b));
    const spell = (order) => [...order].join("-");
    const usual = Object.keys(named)[0];
    let chosen = usual;
    let told = "";

    const list = element("ol", { class: "lines", "aria-label": "Lines of the rubric, as the judge reads them" });
    const guesses = range(n).map((s) => button(s + 1, () => reveal(s + 1), `Guess ${s + 1}`));
    const ask = element("div", { class: "ask" }, element("p", {}, element("strong", {}, `Your guess: which score does ${judge} give?`)), group(...guesses));
    const strip = element("div", { class: "strip", role: "group", "aria-label": `All ${every.length} orders, by the score under each` });
    const big = element("div", { class: "score" });
    const said = output();
    const verdict = element("div", { class: "verdict" }, big, said);
    const cells = new Map(every.map((order, i) => [order, cell(order, i)]));
    const shortcuts = new Map(Object.entries(named).map(([order, name]) => {
      const node = button("", () => choose(order));
      node.append(element("b", {}, scores[order]), ` ${name}`);
      return [order, node];
    }));
    strip.addEventListener("pointerleave", () => show(chosen));
    strip.addEventListener("keydown", travel);
    root.classList.add("landing");
    root.append(
      element("div", { class: "text" }, element("p", {}, "The question: ", element("em", {}, question)),
        element("p", {}, "The answer to be judged:"), element("blockquote", {}, answer)),
      element("div", { class: "rubric" }, element("p", {}, "The rubric: ", element("strong", {}, criterion)), list),
      ask, strip, verdict);
    fill(usual);

    function cell(order, i) {
      const node = button(scores[order], () => choose(order), `${spell(order)}: score ${scores[order]}`);
      node.style.setProperty("--i", i);
      node.addEventListener("focus", () => choose(order));
      node.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(order); });
      return node;
    }

    function reveal(guess) {
      told = `You guessed ${guess}${guess === scores[usual] ? ", correctly" : ""}. `;
      root.classList.add("revealed");
      ask.replaceChildren(
        element("p", {}, element("strong", {}, "Same text, same words, three orders, three scores:")), group(...shortcuts.values()));
      const given = [...new Set(Object.values(scores))].sort();
      strip.append(
        element("p", {}, `One cell for each of the ${every.length} orders. Point at a cell, tap it, or use the arrow keys.`),
        ...given.map((score) => {
          const under = every.filter((order) => scores[order] === score);
          return element("div", { class: "given" },
            element("span", {}, element("b", {}, `Score ${score}`), ` ${under.length} orders`),
            element("div", { class: `cells level-${1 + given.indexOf(score)}` }, ...under.map((order) => cells.get(order))));
        }));
      choose(usual);
      shortcuts.get(usual).focus({ preventScroll: true });
    }

    function choose(order) {
      chosen = order;
      show(order);
      for (const [other, node] of cells) {
        node.tabIndex = other === order ? 0 : -1; // the strip is one stop of the Tab key
        node.setAttribute("aria-pressed", other === order);
      }
      for (const [other, node] of shortcuts) node.setAttribute("aria-pressed", other === order);
    }

    /* Arrow keys: to the neighbour in the strip, or to the nearest cell of the row above or below. */
    function travel(event) {
      const all = [...cells.values()];
      const at = all.indexOf(event.target);
      if (at < 0) return;
      const here = event.target.getBoundingClientRect();
      const nearest = (from, way) => {
        const far = (node) => {
          const box = node.getBoundingClientRect();
          const rows = way * (box.top - here.top);
          return rows < 1 ? Infinity : 10000 * rows + Math.abs(box.left - here.left);
        };
        const best = all.reduce((a, b) => (far(b) < far(a) ? b : a));
        return far(best) < Infinity ? best : from;
      };
      const to = {
        ArrowRight: () => all[Math.min(at + 1, all.length - 1)], ArrowLeft: () => all[Math.max(at - 1, 0)],
        ArrowDown: () => nearest(event.target, 1), ArrowUp: () => nearest(event.target, -1),
        Home: () => all[0], End: () => all.at(-1),
      }[event.key];
      if (!to) return;
      event.preventDefault();
      to().focus();
    }

    function show(order) {
      fill(order);
      const score = scores[order];
      const share = Math.round(100 * probabilities[order][score - 1]);
      big.textContent = score;
      const name = named[order] ? ` (${named[order]})` : "";
      said.textContent = `${told}Under ${spell(order)}${name}, the judge gives ${score}, ` +
        `its most probable score at ${share} %.`;
      told = "";
    }

    /* The lines in this order; after the guess, each with its probability. */
    function fill(order) {
      list.replaceChildren(...[...order].map((digit) => {
        const share = probabilities[order][digit - 1];
        const node = element("li", +digit === scores[order] ? { class: "most" } : {},
          element("span", { class: "line" }, element("b", {}, `Score ${digit}:`), ` ${levels[digit - 1]}`),
          element("span", { class: "share" }, root.classList.contains("revealed") ? `${Math.round(100 * share)} %` : ""));
        node.style.setProperty("--share", `${100 * share}%`);
        return node;
      }));
    }
  }

  /* Controls and drawing ------------------------------------------------------------------------ */

  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function svg(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function figure(title, width, height) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  }

  function group(...children) {
    return element("div", { class: "controls" }, ...children);
  }

  function output() {
    return element("output", { "aria-live": "polite" });
  }

  function button(text, act, label) {
    const node = element("button", { type: "button", ...(label && { "aria-label": label }) }, text);
    node.addEventListener("click", act);
    return node;
  }

  function slider(text, range, format, act) {
    const input = element("input", { type: "range", ...range });
    const shown = element("span", { class: "value" });
    const show = () => {
      shown.textContent = format(input.value);
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => { show(); act(); });
    show();
    const set = (value) => { input.value = value; show(); };
    const limit = (max) => { input.max = max; show(); };
    return { node: element("label", {}, `${text}: `, shown, input), value: () => +input.value, set, limit };
  }

  let groups = 0;
  function choice(text, options, act) {
    const name = `explorable-${(groups += 1)}`;
    const inputs = Object.entries(options).map(([value, label], i) => {
      const input = element("input", { type: "radio", name, value, ...(i === 0 && { checked: "" }) });
      input.addEventListener("change", act);
      return element("label", {}, input, ` ${label}`);
    });
    const node = element("fieldset", {}, element("legend", {}, text), ...inputs);
    return { node, value: () => node.querySelector(":checked").value };
  }

  function select(text, options, act) {
    const node = element("select", {}, ...options.map((o, i) => element("option", { value: i }, o)));
    node.addEventListener("change", () => act(+node.value));
    return element("label", {}, `${text} `, node);
  }

  /* Arithmetic ---------------------------------------------------------------------------------- */

  function range(n) { return [...Array(n).keys()]; }
  function sum(values) { return values.reduce((a, b) => a + b, 0); }
  function mean(values) { return sum(values) / values.length; }
  function number(value) { return value.toFixed(3).replace("-", "−").replace("0.", "."); }
  function scale(from, to, start, end) {
    return (v) => start + ((v - from) / (to - from || 1)) * (end - start);
  }

  function correlation(x, y) {
    const [mx, my] = [mean(x), mean(y)];
    const dot = (a, ma, b, mb) => sum(a.map((v, i) => (v - ma) * (b[i] - mb)));
    return dot(x, mx, y, my) / Math.sqrt(dot(x, mx, x, mx) * dot(y, my, y, my));
  }

  function kappa(x, y) {
    const [mx, my] = [mean(x), mean(y)];
    const dot = (a, ma, b, mb) => mean(a.map((v, i) => (v - ma) * (b[i] - mb)));
    return 2 * dot(x, mx, y, my) / (dot(x, mx, x, mx) + dot(y, my, y, my) + (mx - my) ** 2);
  }

  function permutations(values) {
    if (values.length < 2) return [values];
    return values.flatMap((v, i) =>
      permutations([...values.slice(0, i), ...values.slice(i + 1)]).map((rest) => [v, ...rest]));
  }
})();
