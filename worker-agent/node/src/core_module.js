// The built-in module '@azure/functions-core', by which the npm library @azure/functions reaches its worker. No package of that
// name exists: whoever requires it, at any depth of the app, gets this object.
'use strict';

const Module = require('module');
const { WorkerError } = require('./errors');
const { Disposable } = require('./hooks');

const coreModuleName = '@azure/functions-core';

/** @param {{app: object, logs: object, version: string, hostVersion: () => string}} parts */
function makeCoreModule({ app, logs, version, hostVersion }) {
  return Object.freeze({
    version,
    get hostVersion() {
      return hostVersion();
    },
    Disposable,
    registerFunction: (metadata, callback) => app.register(metadata, callback),
    registerHook: (name, callback) => app.hooks.register(name, callback),
    setProgrammingModel: (model) => {
      if (typeof model?.getInvocationModel !== 'function') throw new WorkerError('a programming model needs getInvocationModel()');
      app.setModel(model);
    },
    getProgrammingModel: () => app.model,
    log: (level, category, message) => logs.fromApp(level, category, message),
  });
}

function installCoreModule(coreModule) {
  const load = Module._load;
  Module._load = function (request, ...rest) {
    return request === coreModuleName ? coreModule : load.call(this, request, ...rest);
  };
  // require.resolve() finds it too, as it does built-in modules: by its bare name.
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, ...rest) {
    return request === coreModuleName ? coreModuleName : resolve.call(this, request, ...rest);
  };
}

module.exports = { installCoreModule, makeCoreModule };
