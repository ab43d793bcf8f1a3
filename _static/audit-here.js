/* "Audit here": an audit of scores in the reader's browser (book/audit-here.md).

   The page's policy allows no request to another site, and the worker starts from a blob, so that
   the policy holds in it. Nothing is loaded before the reader asks for it, and nothing is sent. */
document.addEventListener("DOMContentLoaded", () => {
  "use strict";

  const MOST_BYTES = 50 * 2 ** 20; // of all files; a table of text takes ten times its size
  const KEPT = "audit-here"; // in this tab's storage: what was typed, never a file
  const root = document.getElementById("audit-form");
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const form = root.querySelector("form");
  const base = new URL("../browser/", document.baseURI).href;
  const program = new URL("../_static/browser/worker.js", document.baseURI).href;
  const megabytes = (bytes) => Math.round(bytes / 1e6);
  let worker = null;
  let manifest = null;
  let made = [];

  form.hidden = false;
  part("fallback").remove();
  const before = kept();
  for (const [name, text] of Object.entries(before.fields ?? {})) {
    if (form.elements[name]) form.elements[name].value = text;
  }
  prepare();

  /* Say what this copy of the book can do, and what stopped before a reload. */
  async function prepare() {
    if (location.protocol === "file:") {
      say("A browser runs this page only over http. In a clone, run make browser, and open the address that it prints.");
      return;
    }
    manifest = await (await fetch(`${base}manifest.json`)).json();
    if (!manifest.bytes) {
      say("This copy of the book was built without the files for this page. In a clone, run make browser, and open the address that it prints.");
      return;
    }
    part("start").textContent = `Start (${megabytes(manifest.bytes)} MB)`;
    part("start").disabled = false;
    if (before.running) {
      say("The page was loaded again during an audit. Your settings are still here and nothing was sent: start, and choose the file again.");
      keep({ running: false });
    }
  }

  part("start").addEventListener("click", async () => {
    part("start").disabled = true;
    part("bar").hidden = false;
    say("Loading …");
    try {
      const text = await (await fetch(program)).text();
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      worker = new Worker(address);
      worker.onmessage = ({ data }) => heard[data.kind](data);
      worker.onerror = (event) => heard.broken({ error: event.message });
      worker.postMessage({ kind: "start", base, manifest });
    } catch (error) {
      heard.broken({ error: error.message });
    }
  });

  const heard = {
    loaded({ bytes }) {
      part("bar").value = bytes / manifest.bytes;
      say(`Loading: ${megabytes(bytes)} of ${megabytes(manifest.bytes)} MB`);
    },
    starting() {
      part("bar").removeAttribute("value");
      say("Starting Python …");
    },
    ready() {
      part("bar").hidden = true;
      part("start").hidden = true;
      part("audit").disabled = false;
      say("Ready. From here on nothing needs the network: you can switch it off. Choose your file of scores.");
    },
    done({ seconds, error, notes, failures, page, numbers }) {
      idle();
      if (error) {
        say(error, true);
        return;
      }
      say(`Audited in ${seconds.toFixed(1)} s.`);
      part("notes").replaceChildren(...notes.map((line) => element("li", line)));
      part("failures").textContent = failures.length ? `Failed: ${failures.join("; ")}` : "";
      made.forEach(URL.revokeObjectURL);
      made = [link("page", page, "text/html"), link("numbers", numbers, "application/json")];
      part("frame").srcdoc = page;
      part("found").hidden = false;
      part("found").scrollIntoView({ block: "nearest" });
    },
    broken({ error }) {
      idle();
      worker?.terminate();
      worker = null;
      part("audit").disabled = true;
      part("start").hidden = part("start").disabled = false;
      part("bar").hidden = true;
      say(`This stopped: ${error}. Nothing was sent. Start again; if it stops there again, run the command in a clone.`, true);
    },
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!worker || part("audit").disabled) return;
    const fields = typed();
    const chosen = [...form.elements].filter((input) => input.type === "file" && input.files.length);
    const files = chosen.map((input) => [input.name, input.files[0]]);
    const size = files.reduce((sum, [, file]) => sum + file.size, 0);
    part("found").hidden = true;
    if (!files.some(([name]) => name === "judgments")) {
      say("Choose your file of scores first.", true);
      return;
    }
    if (size > MOST_BYTES) {
      say(`${files.map(([, file]) => file.name).join(" and ")}: ${megabytes(size)} MB, and this page takes ${megabytes(MOST_BYTES)} MB. Delete the columns that are not needed, such as the texts, or run the command in a clone.`, true);
      return;
    }
    part("audit").disabled = true;
    say("Auditing …");
    keep({ fields, running: true });
    try {
      const read = files.map(async ([name, file]) =>
        [name, { name: file.name.replaceAll(/[/\\\0]/g, "_"), bytes: await file.arrayBuffer() }]);
      const given = Object.fromEntries(await Promise.all(read));
      worker.postMessage({ kind: "audit", files: given, fields },
        Object.values(given).map((file) => file.bytes));
    } catch (error) { // the file was moved, or it may not be read
      idle();
      say(`The file cannot be read: ${error.message}`, true);
    }
  });

  form.addEventListener("input", () => keep({ fields: typed() }));

  // A file that is dropped anywhere on the form is the file of scores.
  for (const name of ["dragover", "drop"]) {
    form.addEventListener(name, (event) => {
      event.preventDefault();
      if (name === "drop" && event.dataTransfer.files.length) {
        form.elements.judgments.files = event.dataTransfer.files;
      }
    });
  }

  function typed() {
    const texts = [...form.elements].filter((input) => input.name && input.type !== "file");
    const fields = Object.fromEntries(texts.map((input) => [input.name, input.value]));
    return fields;
  }

  function idle() {
    part("audit").disabled = !worker;
    keep({ running: false });
  }

  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
    } catch { // storage may be forbidden, and then nothing is kept
      return {};
    }
  }

  function keep(change) {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ ...kept(), ...change }));
    } catch { /* see above */ }
  }

  function say(text, isError = false) {
    part("state").textContent = text;
    part("state").classList.toggle("error", isError);
    if (isError) part("state").scrollIntoView({ block: "nearest" });
  }

  function link(name, text, type) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    part(name).href = address;
    return address;
  }

  function element(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  }
});
