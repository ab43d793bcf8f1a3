/* How the search ranks what it has found. Sphinx knows neither that the words of a title belong
   together nor that a chapter has a short name; a page whose title or name is what was asked for
   stands first, one that has all the words asked for in them before one that has some. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, anchor, description, score]) => {
    if (anchor || description) return score; // a place on a page, or a name of the package
    const words = (text) => splitQuery(text.replace(/<span.*?<\/span>/g, "").toLowerCase());
    const asked = words(document.querySelector('input[name="q"]')?.value ?? "");
    const short = page.split("/").pop().replace(/^(\d+|A)_/, "").replace(/[_-]/g, " ");
    const names = page.startsWith("book/api/") ? [title] : [title, short];
    if (names.some((name) => words(name).join(" ") === asked.join(" "))) return score + 1000;
    const stemmer = new Stemmer();
    const has = (name, word) => words(name).some((w) => stemmer.stemWord(w) === stemmer.stemWord(word));
    const telling = asked.filter((word) => !stopwords.includes(word));
    return score + 20 * (telling.length && names.some((name) => telling.every((word) => has(name, word))));
  },
};
