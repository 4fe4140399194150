// File patterns as package.json's "main" uses them: * ? [..] {a,b} and ** over whole folders. Node 18 has none of its own. Hidden
// files and node_modules are never matched by a pattern.
'use strict';

const fs = require('fs');
const path = require('path');

const foldersMax = 20000; // A pattern that wanders through more is a mistake.

const hasMagic = (pattern) => /[*?[\]{}]/.test(pattern);

/** "a/{b,c{d,e}}.js" -> "a/b.js", "a/cd.js", "a/ce.js". Unbalanced braces stay as they are. */
function expandBraces(pattern) {
  const open = pattern.indexOf('{');
  if (open < 0) return [pattern];
  const parts = [];
  let depth = 0;
  let start = open + 1;
  for (let at = open; at < pattern.length; ++at) {
    const character = pattern[at];
    if (character === '{') ++depth;
    else if (character === ',' && depth === 1) {
      parts.push(pattern.slice(start, at));
      start = at + 1;
    } else if (character === '}' && --depth === 0) {
      parts.push(pattern.slice(start, at));
      const [head, tail] = [pattern.slice(0, open), pattern.slice(at + 1)];
      return [...new Set(parts.flatMap((part) => expandBraces(head + part + tail)))];
    }
  }
  return [pattern];
}

/** One path segment as an expression. */
function segmentExpression(segment) {
  let source = '';
  for (let at = 0; at < segment.length; ++at) {
    const character = segment[at];
    const close = character === '[' ? segment.indexOf(']', at + 2) : -1;
    if (character === '*') source += '[^/]*';
    else if (character === '?') source += '[^/]';
    else if (close > 0) {
      const inside = segment.slice(at + 1, close).replace(/\\/g, '\\\\').replace(/^!/, '^');
      source += `[${inside}]`;
      at = close;
    } else source += character.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  }
  return new RegExp(`^${source}$`, 's');
}

/**
 * Absolute paths of the files below `root` that match, sorted.
 * @param {string} root
 * @param {string} pattern with forward slashes, relative to root
 */
function glob(root, pattern) {
  const found = new Set();
  let folders = 0;
  const walk = (folder, segments) => {
    const [segment, ...rest] = segments;
    if (segment === undefined) return;
    if (segment === '.' || segment === '') return walk(folder, rest);
    if (++folders > foldersMax) throw new Error(`the pattern '${pattern}' looks through more than ${foldersMax} folders`);
    if (segment === '**') walk(folder, rest.length > 0 ? rest : ['*']);
    if (segment !== '**' && !hasMagic(segment)) return visit(path.join(folder, segment), rest);
    const expression = segment === '**' ? undefined : segmentExpression(segment);
    for (const name of list(folder)) {
      if (name === 'node_modules' || (name.startsWith('.') && !segment.startsWith('.'))) continue;
      const full = path.join(folder, name);
      if (expression) {
        if (expression.test(name)) visit(full, rest);
      } else if (fs.lstatSync(full, { throwIfNoEntry: false })?.isDirectory()) {
        walk(full, segments); // Links to folders are not followed: they may lead in circles.
      }
    }
  };
  const visit = (full, rest) => {
    const facts = fs.statSync(full, { throwIfNoEntry: false });
    if (rest.length > 0) {
      if (facts?.isDirectory()) walk(full, rest);
    } else if (facts?.isFile()) found.add(full);
  };
  for (const one of expandBraces(pattern)) walk(root, one.split('/'));
  return [...found].sort();
}

function list(folder) {
  try {
    return fs.readdirSync(folder);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  }
}

module.exports = { expandBraces, glob, hasMagic };
