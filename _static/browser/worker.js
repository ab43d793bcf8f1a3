/* Python in a worker, for the page "Audit here": loads once, then audits what it is given.

   The page starts this text as a blob, so that the page's policy holds here as well: a worker that
   is started from an address does not inherit it. After the start, nothing is left here that could
   send a request. */
"use strict";

let audit;

onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data);
    else run(data);
  } catch (error) {
    // The last line of a traceback says what happened; a browser's own error has one line.
    postMessage({ kind: "broken", error: String(error.message ?? error).trim().split("\n").pop() });
  }
};

/* Load Python and the package. `manifest` says which files are stored compressed. */
async function start({ base, manifest }) {
  const load = fetch.bind(self);
  const compressed = new Set(manifest.compressed);
  let loaded = 0;
  // Every file goes through here: its bytes are counted, and it is unpacked where it is packed.
  self.fetch = async (address, options = {}) => {
    const name = String(address.url ?? address).split("/").pop();
    const answer = await load(base + name + (compressed.has(name) ? ".packed" : ""), {
      ...options, integrity: "",
    });
    if (!answer.ok) throw new Error(`${name} could not be loaded (HTTP ${answer.status})`);
    let body = answer.body.pipeThrough(new TransformStream({
      transform(part, out) {
        loaded += part.length;
        postMessage({ kind: "loaded", bytes: loaded });
        out.enqueue(part);
      },
    }));
    if (compressed.has(name)) body = body.pipeThrough(new DecompressionStream("gzip"));
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(body, { headers: { "Content-Type": type } });
  };

  const archives = Promise.all(manifest.archives.map(async (name) =>
    (await fetch(base + name)).arrayBuffer()));
  importScripts(`${base}pyodide.js`);
  const python = await loadPyodide({ indexURL: base, packages: manifest.packages });
  for (const archive of await archives) python.unpackArchive(archive, "zip", { extractDir: "/app" });
  postMessage({ kind: "starting" });
  audit = python.runPython(`
import sys
sys.path.insert(0, "/app")
from rubricnb.auditing.form import audit_form
audit_form
`);
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "WebTransport", "EventSource", "importScripts"]) {
    self[name] = undefined;
  }
  self.python = python;
  postMessage({ kind: "ready" });
}

/* Audit files, which are gone from the memory's folder afterwards. */
function run({ files, fields }) {
  const folder = "/given";
  python.FS.mkdirTree(folder);
  for (const [role, { name, bytes }] of Object.entries(files)) {
    python.FS.mkdirTree(`${folder}/${role}`);
    python.FS.writeFile(`${folder}/${role}/${name}`, new Uint8Array(bytes));
  }
  const begun = performance.now();
  const found = JSON.parse(audit(folder, JSON.stringify(fields)));
  postMessage({ kind: "done", seconds: (performance.now() - begun) / 1000, ...found });
}
