/* Opened from disk, a page may not fetch another: the search shows titles without excerpts. */
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

/* A link to a place in the folded evidence of a chapter unfolds it; so does printing. */
(() => {
  const folds = () => document.querySelectorAll("details.evidence");
  const reveal = () => {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = place && place.closest("details.evidence");
    if (fold && !fold.open) {
      fold.open = true;
      place.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", reveal);
  document.addEventListener("DOMContentLoaded", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal(); // the address does not change then
  });
  window.addEventListener("beforeprint", () => folds().forEach((fold) => (fold.open = true)));
})();

/* What unfolds a page's sub-pages in the sidebar is an arrow: it says so to those who hear the page. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".bd-sidebar-primary li.has-children").forEach((item) => {
    const [link, arrow] = [item.querySelector("a"), item.querySelector("summary")];
    if (link && arrow) arrow.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  });
});

/* A figure that a phone shows in part says so until its end is reached. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".figure-scroll").forEach((figure) => {
    const sign = document.createElement("p");
    sign.className = "swipe";
    sign.textContent = "swipe: more of the figure at the right →";
    figure.after(sign);
    const tell = () => {
      figure.classList.toggle("more", figure.scrollLeft + figure.clientWidth < figure.scrollWidth - 8);
    };
    figure.addEventListener("scroll", tell, { passive: true });
    new ResizeObserver(tell).observe(figure);
    figure.querySelectorAll("img").forEach((image) => image.addEventListener("load", tell));
    tell();
  });
});
