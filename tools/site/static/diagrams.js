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

const LEAST_SCALE = 0.7;

async function draw() {
  window.mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    flowchart: { useMaxWidth: false }, // their own width, which is then limited below
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
    // As wide as the text where that leaves its words readable, else it scrolls.
    drawn.style.maxWidth = "100%";
    drawn.style.height = "auto";
    drawn.style.minWidth = `${Math.round(LEAST_SCALE * drawn.viewBox.baseVal.width)}px`;
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
