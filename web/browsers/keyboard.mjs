/** Uses a page by its keyboard alone. */

const MAX_STEPS = 400;

const MAX_STOPS = 40;

/** Controls that the Tab key reaches from where it is, and of which nobody sees that they have the focus. */
export async function unseen(page) {
  const found = new Set();
  for (let stop = 0; stop < MAX_STOPS; stop += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === null || element === document.body) return "";
      const isOutlined = (style) => style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0;
      const { width, height } = element.getBoundingClientRect();
      const behind = getComputedStyle(element, "::after"); // a link that stands for the card around it
      const label = element.labels?.[0]; // of a control that is drawn by its label
      const isSeen = [getComputedStyle(element), ...(behind.content === "none" ? [] : [behind]), ...(label ? [getComputedStyle(label)] : [])].some(isOutlined);
      return isSeen && Math.min(width, height) >= 1 ? null : `${element.tagName} ${element.ariaLabel ?? element.textContent.trim().slice(0, 40)}`;
    });
    if (name === "") break;
    if (name !== null) found.add(name);
  }
  return [...found];
}

/**
 * Functions that Tab to a control and press Enter on it. A control is named by its text or its label, or, where it
 * begins with one of `.#[` or a tag and a bracket, by a selector. `outlines` collects how its focus is shown.
 */
export function keyboard(page, outlines) {
  const isThere = (name, isSelector) =>
    page.evaluate(
      (wanted, bySelector) => {
        const element = document.activeElement;
        if (element === null) return false;
        return bySelector ? element.matches(wanted) : [element.textContent.trim(), element.ariaLabel].includes(wanted);
      },
      name,
      isSelector,
    );

  async function reach(name, { back = false } = {}) {
    const isSelector = /^[.#[]|^\w+[[.]/.test(name);
    if (back) await page.keyboard.down("Shift");
    try {
      for (let step = 0; step < MAX_STEPS; step += 1) {
        await page.keyboard.press("Tab");
        if (await isThere(name, isSelector)) {
          outlines.push(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle));
          return;
        }
      }
    } finally {
      if (back) await page.keyboard.up("Shift");
    }
    throw new Error(`no control ${name} is reached by the Tab key`);
  }

  async function press(name, options) {
    await reach(name, options);
    await page.keyboard.press("Enter");
  }

  return { reach, press };
}
