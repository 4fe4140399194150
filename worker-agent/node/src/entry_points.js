// Which files of an app to load, and how: package.json's "main" is a file or a pattern; files are CommonJS or ES modules.
'use strict';

const fs = require('fs');
const path = require('path');
const { createRequire } = require('module');
const { pathToFileURL } = require('url');
const { WorkerError, toError } = require('./errors');
const { glob, hasMagic } = require('./glob');

/** The files that package.json's "main" names, as absolute paths; none when there is no package.json or no "main". */
function findEntryPoints(appDirectory) {
  const file = path.join(appDirectory, 'package.json');
  let text;
  try {
    text = fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw new WorkerError(`${file} cannot be read: ${error.message}`);
  }
  let main;
  try {
    main = JSON.parse(text.replace(/^\uFEFF/, ''))?.main;
  } catch (error) {
    throw new WorkerError(`${file} is not JSON: ${error.message}`);
  }
  if (main === undefined || main === null || main === '') return [];
  if (typeof main !== 'string') throw new WorkerError(`${file}: "main" must be text, a file or a pattern of files`);
  const files = hasMagic(main) ? glob(appDirectory, main) : findOne(appDirectory, main);
  if (files.length === 0) throw new WorkerError(`${file}: "main" is '${main}', and no file matches it`);
  return files;
}

function findOne(appDirectory, main) {
  const full = path.resolve(appDirectory, main);
  if (fs.statSync(full, { throwIfNoEntry: false })?.isFile()) return [full];
  try {
    return [createRequire(path.join(appDirectory, 'package.json')).resolve(full)]; // without extension, or a folder with an index
  } catch {
    return [];
  }
}

/** As Node decides it. Trying require first would run a file twice that requires an ES module somewhere inside. */
function isEsModule(file) {
  const extension = path.extname(file);
  if (extension !== '.js') return extension === '.mjs';
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    let text;
    try {
      text = fs.readFileSync(path.join(folder, 'package.json'), 'utf8');
    } catch {
      if (folder === path.dirname(folder) || path.basename(folder) === 'node_modules') return false;
      continue;
    }
    try {
      return JSON.parse(text.replace(/^\uFEFF/, ''))?.type === 'module';
    } catch {
      return false; // require tells what is wrong with it
    }
  }
}

/** Loads one entry point. What it throws is told with the file's name. */
async function loadEntryPoint(appDirectory, file) {
  try {
    return isEsModule(file) ? await import(pathToFileURL(file).href) : createRequire(file)(file);
  } catch (thrown) {
    const error = toError(thrown);
    const told = new WorkerError(`entry point '${path.relative(appDirectory, file)}' failed: ${error.message}`);
    told.name = error.name;
    told.stack = error.stack ?? told.message;
    throw told;
  }
}

module.exports = { findEntryPoints, loadEntryPoint };
