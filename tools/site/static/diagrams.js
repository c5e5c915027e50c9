"use strict";

// Draws Mermaid diagrams, in light or dark as the page is. Without Mermaid, or in an error, their text stays.
const texts = [...document.querySelectorAll(".highlight-mermaid pre")].map((pre) => ({
  holder: pre.closest(".highlight-mermaid"),
  text: pre.textContent,
}));
const here = new URL(document.currentScript.src);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.body.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && dark.matches);
}

async function draw() {
  window.mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    flowchart: { useMaxWidth: false }, // wide ones scroll: their words stay as large as those around them
    sequence: { useMaxWidth: false },
    state: { useMaxWidth: false },
    theme: isDark() ? "dark" : "neutral",
    fontFamily: getComputedStyle(document.body).fontFamily,
  });
  for (const [number, { holder, text }] of texts.entries()) {
    const { svg } = await window.mermaid.render(`diagram-${number}`, text);
    const figure = document.createElement("div");
    figure.className = "diagram";
    figure.innerHTML = svg; // cleaned by Mermaid, of text that is part of the documentation
    const drawn = figure.firstElementChild;
    drawn.setAttribute("role", "img");
    if (!drawn.hasAttribute("aria-labelledby")) {
      drawn.setAttribute("aria-label", `Diagram: ${[...drawn.querySelectorAll("text, .nodeLabel, .edgeLabel")].map((part) => part.textContent.trim()).filter(Boolean).join(", ")}`);
    }
    holder.replaceChildren(figure);
    holder.dataset.drawn = "";
  }
}

if (texts.length > 0) {
  const script = document.createElement("script");
  script.src = new URL("mermaid.tiny.js", here);
  script.addEventListener("load", () => {
    let last = draw();
    const again = () => (last = last.then(draw));
    dark.addEventListener("change", again);
    new MutationObserver(again).observe(document.body, { attributeFilter: ["data-theme"] });
  });
  document.head.append(script);
}
