// FunctionEnvironmentReload: a placeholder becomes a worker of one application. What can be refused is refused before anything
// has changed.
'use strict';

const fs = require('fs');
const { WorkerError } = require('./errors');

async function replaceEnvironment({ app, environmentVariables, functionAppDirectory, load }) {
  if (app.isLoaded) {
    throw new WorkerError(
      `this worker already holds the application in ${app.directory}, and a Node process loads an application only once: ` +
        'start a fresh process',
    );
  }
  if (functionAppDirectory && !fs.statSync(functionAppDirectory, { throwIfNoEntry: false })?.isDirectory()) {
    throw new WorkerError(`the application's folder ${functionAppDirectory} is not there or not a folder`);
  }
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environmentVariables);
  if (!load) return;
  process.chdir(functionAppDirectory);
  await load();
}

module.exports = { replaceEnvironment };
