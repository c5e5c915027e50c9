const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/\w{3,}/g) ?? [];

// Sphinx's own numbers, a page that is named like what is looked for first, and pages for users before those for developers.
var Scorer = {
  score: ([name, title, , , score]) => {
    const inTitle = asked.filter((word) => title.toLowerCase().includes(word)).length;
    return score + 5 * inTitle - (/^(adr|internals|project)\//.test(name) ? 20 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
