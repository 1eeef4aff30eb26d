// Search finds a word in a guide before it finds it in the hundreds of generated and internal pages.
var Scorer = {
  score: ([page, _title, _anchor, _description, score, _file, kind]) =>
    kind === "text" && /^(docs\/(machines|documents|adr|known-bugs)|[A-Z]+$)/.test(page) ? score - 4 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
