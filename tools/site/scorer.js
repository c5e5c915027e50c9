// Sphinx's own numbers, and pages for users before those for developers.
var Scorer = {
  score: ([name, , , , score]) => (/^(adr|internals|project)\//.test(name) ? score - 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
