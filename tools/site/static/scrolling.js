"use strict";

// What scrolls sideways can be reached by keyboard, and what does not is no stop on the way.
function mark() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .diagram")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

new ResizeObserver(mark).observe(document.body);
// A diagram is drawn later, and may leave the page as tall as its text did.
new MutationObserver(mark).observe(document.body, { childList: true, subtree: true });
