'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { expandBraces, glob, hasMagic } = require('../../../../worker-agent/node/src/glob');

function folderWith(t, ...names) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'windlass-glob-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  for (const name of names) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), '');
  }
  return (pattern) => glob(folder, pattern).map((full) => path.relative(folder, full));
}

test('Glob.BracesExpandAndUnbalancedOnesStay', () => {
  assert.deepEqual(expandBraces('a/{b,c{d,e}}.js'), ['a/b.js', 'a/cd.js', 'a/ce.js']);
  assert.deepEqual(expandBraces('{a,}b'), ['ab', 'b']);
  assert.deepEqual(expandBraces('a{b'), ['a{b']);
  assert.equal(hasMagic('src/index.js'), false);
});

test('Glob.StarsStayInTheirFolder', (t) => {
  const find = folderWith(t, 'src/a.js', 'src/b.ts', 'src/deep/c.js', 'a+b.js');
  assert.deepEqual(find('src/*.js'), ['src/a.js']);
  assert.deepEqual(find('./src/*.js'), ['src/a.js']);
  assert.deepEqual(find('*/?.[jt]s'), ['src/a.js', 'src/b.ts']);
  assert.deepEqual(find('src/[!a].*'), ['src/b.ts']);
  assert.deepEqual(find('a+*.js'), ['a+b.js']);
  assert.deepEqual(find('none/*.js'), []);
});

test('Glob.DoubleStarsGoThroughFoldersButNotIntoPackagesOrHiddenOnes', (t) => {
  const find = folderWith(t, 'a.js', 'x/b.js', 'x/y/c.js', 'node_modules/p/d.js', '.git/e.js', 'x/.f.js');
  assert.deepEqual(find('**/*.js'), ['a.js', 'x/b.js', 'x/y/c.js']);
  assert.deepEqual(find('x/**'), ['x/b.js', 'x/y/c.js']);
  assert.deepEqual(find('**/y/*.js'), ['x/y/c.js']);
});

test('Glob.FoldersAreNoFilesAndCirclesEnd', (t) => {
  const find = folderWith(t, 'x/a.js', 'x/folder.js/b.js');
  assert.deepEqual(find('x/*.js'), ['x/a.js']);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'windlass-glob-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  fs.symlinkSync(folder, path.join(folder, 'self'));
  fs.writeFileSync(path.join(folder, 'a.js'), '');
  assert.deepEqual(glob(folder, '**/*.js'), [path.join(folder, 'a.js')]);
});
