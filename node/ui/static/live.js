// Keeps the figures fresh: every five seconds, while the page is looked at, the
// live part is asked for again, made and escaped by the server. After a failure
// it says so and tries more slowly.
"use strict";
(function () {
  const part = document.getElementById("live");
  if (!part) return;
  const usual = 5000, slowest = 60000;
  let wait = usual;

  async function refresh() {
    if (document.hidden) {
      wait = usual;
    } else {
      try {
        const answer = await fetch("/ui/live", { credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(20000) });
        if (answer.status === 401) { location.assign("/login"); return; }
        if (!answer.ok) throw new Error("status " + answer.status);
        part.innerHTML = await answer.text();
        part.classList.remove("stale");
        part.removeAttribute("title");
        wait = usual;
      } catch (err) {
        part.classList.add("stale");
        part.title = "This peer does not answer; these figures are old.";
        wait = Math.min(2 * wait, slowest);
      }
    }
    setTimeout(refresh, wait);
  }
  setTimeout(refresh, wait);
})();
