#include "conformance/runner/report_html_parts.h"

namespace windlass::conformance {
namespace {

constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --soft: #5a6677; --line: #d9dee6; --code: #f1f3f7; --link: #1f5fbf;
  --ok: #1a7f4b; --ok-bg: #d8f3e3; --info: #1f5fbf; --info-bg: #dbe8fb; --warn: #8a5a00; --warn-bg: #fdeccb;
  --bad: #b3261e; --bad-bg: #fbdcd9; --odd: #6b3fa0; --odd-bg: #e9defa; --gray: #4b5563; --gray-bg: #e3e7ed;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161d; --card: #1a2029; --ink: #e4e9f1; --soft: #9aa7ba; --line: #2e3746; --code: #11151c; --link: #7db0ff;
    --ok: #6fd8a0; --ok-bg: #14382a; --info: #8fbcff; --info-bg: #17305a; --warn: #f2c065; --warn-bg: #41310f;
    --bad: #ff9c94; --bad-bg: #52201d; --odd: #cdb0ff; --odd-bg: #38275a; --gray: #b7c0ce; --gray-bg: #2c3442;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 6rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .6rem; } h3 { font-size: .85rem; margin: 1rem 0 .3rem; color: var(--soft); }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
code, pre { font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin-top: 1rem; }
.top { display: flex; gap: 1rem; align-items: center; flex-wrap: wrap; }
.facts { margin: .3rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
.result { font-size: 1.1rem; font-weight: 700; padding: .5rem 1rem; border-radius: .5rem; white-space: nowrap; }
.bar { display: flex; height: .9rem; border-radius: .45rem; overflow: hidden; margin-bottom: .8rem; background: var(--line); gap: 2px; }
.bar span { min-width: 3px; background: var(--tone); }
.chips { display: flex; flex-wrap: wrap; gap: .4rem; }
button, input { font: inherit; color: inherit; }
button { cursor: pointer; border: 1px solid var(--line); border-radius: 1rem; padding: .15rem .7rem; background: var(--card); }
button[aria-pressed=true] { outline: 2px solid var(--ink); outline-offset: 1px; }
.v { display: inline-block; white-space: nowrap; font-size: .8rem; font-weight: 600; padding: .05rem .5rem; border-radius: .3rem; }
.v, .cell, .result, button.chip { color: var(--tone); background: var(--wash); }
.v-ok { --tone: var(--ok); --wash: var(--ok-bg); }
.v-informational { --tone: var(--info); --wash: var(--info-bg); }
.v-non-strict, .v-wrong-code, .v-unclean { --tone: var(--warn); --wash: var(--warn-bg); }
.v-unimplemented { --tone: var(--gray); --wash: var(--gray-bg); }
.v-failed { --tone: var(--bad); --wash: var(--bad-bg); }
.v-harness-error { --tone: var(--odd); --wash: var(--odd-bg); }
.tag { font-size: .75rem; color: var(--soft); border: 1px solid var(--line); border-radius: .3rem; padding: 0 .35rem; margin-left: .4rem; }
.map { display: grid; grid-template-columns: max-content 1fr max-content; gap: .35rem .8rem; align-items: center; }
.map .cells { display: flex; flex-wrap: wrap; gap: 3px; }
.cell { width: 1.4rem; height: 1.4rem; border-radius: .25rem; display: grid; place-items: center; text-decoration: none; font-size: .8rem; font-weight: 700; }
.cell.v-failed, .cell.v-harness-error { color: var(--card); background: var(--tone); }
.cell:hover { outline: 2px solid var(--tone); }
#failures ul { list-style: none; margin: 0; padding: 0; } #failures li { padding: .1rem 0; }
.count { color: var(--soft); font-variant-numeric: tabular-nums; text-align: right; }
.find { display: flex; gap: .5rem; flex-wrap: wrap; align-items: center; position: sticky; top: 0; background: var(--card); padding: .5rem 0; z-index: 2; }
.find input { flex: 1 1 18rem; padding: .4rem .7rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--page); }
#matrix { width: 100%; border-collapse: collapse; }
#matrix th, #matrix td { text-align: left; padding: .35rem .5rem; vertical-align: top; }
#matrix thead th { color: var(--soft); font-size: .8rem; border-bottom: 2px solid var(--line); }
#matrix th.area { padding-top: 1.2rem; font-size: 1rem; }
#matrix tr[data-case] { scroll-margin-top: 4rem; }
#matrix tr[data-case] > * { border-top: 1px solid var(--line); }
#matrix tr[data-case]:target > * { background: var(--info-bg); }
#matrix th.case { font-weight: 600; overflow-wrap: anywhere; }
#matrix td.more { padding-top: 0; padding-bottom: .7rem; }
.time { font-variant-numeric: tabular-nums; white-space: nowrap; }
summary { cursor: pointer; color: var(--soft); }
details[open] > summary { color: var(--ink); margin-bottom: .5rem; }
.inside { border-left: 3px solid var(--line); padding-left: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.pair { margin-top: .6rem; display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: .8rem; }
.box { background: var(--code); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .7rem; }
.box.came { border-left: 4px solid var(--bad); } .box.expected { border-left: 4px solid var(--ok); }
.box h3 { margin: 0 0 .2rem; }
ol.steps { margin: 0; padding-left: 1.8rem; }
ol.wire { list-style: none; margin: 0; padding: .3rem 0; background: var(--code); border: 1px solid var(--line); border-radius: .4rem; }
ol.wire li { display: grid; grid-template-columns: 7rem 9rem 1fr; gap: .6rem; padding: .15rem .7rem; }
ol.wire time, ol.wire .who { color: var(--soft); font-size: .8rem; line-height: 1.6; font-variant-numeric: tabular-nums; }
ol.wire time { text-align: right; white-space: nowrap; }
ol.wire .who b { font-size: 1rem; }
ol.wire .sent .who b { color: var(--info); } ol.wire .received .who b { color: var(--ok); }
ol.wire .received pre { border-left: 3px solid var(--ok); padding-left: .5rem; }
ol.wire .sent pre { border-left: 3px solid var(--info); padding-left: .5rem; }
ol.wire .note { color: var(--soft); } ol.wire .note pre { font-style: italic; }
ol.wire .step { border-top: 1px dashed var(--line); margin-top: .3rem; padding-top: .3rem; }
ol.wire .step pre { font-weight: 600; }
.type { font-weight: 600; font-size: .85rem; }
[hidden] { display: none !important; }
@media (max-width: 40rem) { ol.wire li { grid-template-columns: 1fr; gap: 0; } ol.wire time { text-align: left; } }
@media print { .find { display: none; } }
)css";

constexpr std::string_view kScript = R"js(
(() => {
  'use strict';
  const box = document.getElementById('filter');
  const rows = Array.from(document.querySelectorAll('#matrix tr[data-case]'));
  const keys = ['area', 'verdict', 'level', 'revision', 'role', 'standing'];
  // A word is part of an id, the beginning of an area or verdict, or key:value; a minus before it turns it round.
  const fits = (row, word) => {
    if (word.length > 1 && word[0] === '-') return !fits(row, word.slice(1));
    const data = row.dataset, at = word.indexOf(':'), key = word.slice(0, Math.max(at, 0));
    const begins = (text, start) => text.toLowerCase().startsWith(start);
    if (keys.includes(key)) return begins(data[key], word.slice(at + 1));
    return data.case.toLowerCase().includes(word) || begins(data.area, word) || begins(data.verdict, word);
  };
  const apply = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const hide = !words.every(word => fits(row, word));
      row.hidden = row.nextElementSibling.hidden = hide;
      if (!hide) ++shown;
    }
    for (const group of document.querySelectorAll('#matrix tbody'))
      group.hidden = !group.querySelector('tr[data-case]:not([hidden])');
    for (const button of document.querySelectorAll('button[data-filter]'))
      button.setAttribute('aria-pressed', String(button.dataset.filter === box.value.trim()));
    document.getElementById('shown').textContent = shown + ' of ' + rows.length + ' shown';
  };
  const openTarget = () => {
    let name = '';
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const row = rows.find(each => each.id === name);
    if (!row) return;
    if (row.hidden) { box.value = ''; apply(); }
    row.nextElementSibling.querySelector('details').open = true;
    row.scrollIntoView();
  };
  const setAll = open => {
    for (const row of rows) if (!row.hidden) row.nextElementSibling.querySelector('details').open = open;
  };
  box.addEventListener('input', apply);
  for (const button of document.querySelectorAll('button[data-filter]'))
    button.addEventListener('click', () => {
      box.value = button.dataset.filter === box.value.trim() ? '' : button.dataset.filter;
      apply();
    });
  document.getElementById('open-all').addEventListener('click', () => setAll(true));
  document.getElementById('close-all').addEventListener('click', () => setAll(false));
  addEventListener('hashchange', openTarget);
  box.value = new URLSearchParams(location.search).get('filter') || box.value;
  apply();
  openTarget();
})();
)js";

}  // namespace

std::string_view report_style() {
  return kStyle;
}

std::string_view report_script() {
  return kScript;
}

std::string_view report_script_hash() {
  return "PBbUA2LuWNJYSQCewObnimn2O5QWJsM9Fr0XwD61n3c=";
}

}  // namespace windlass::conformance
