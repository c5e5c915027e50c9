/** Uses a page by its keyboard alone. */

const MOST_STEPS = 400;

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
      for (let step = 0; step < MOST_STEPS; step += 1) {
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
