// FunctionEnvironmentReload: a placeholder becomes a worker of one application. What can be refused is refused before anything
// has changed.
'use strict';

async function replaceEnvironment({ app, environmentVariables, functionAppDirectory, load }) {
  app.checkLoadable(functionAppDirectory);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environmentVariables);
  if (!functionAppDirectory) return;
  process.chdir(functionAppDirectory);
  await load(functionAppDirectory);
}

module.exports = { replaceEnvironment };
