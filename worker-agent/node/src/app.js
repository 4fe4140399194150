// The application of this process: what its entry points registered, or why they failed. A process loads one application once,
// because Node keeps modules for good.
'use strict';

const fs = require('fs');
const { WorkerError } = require('./errors');
const { Disposable, Hooks, hookContext } = require('./hooks');
const { findEntryPoints, loadEntryPoint } = require('./entry_points');
const { toFunctionMetadata } = require('./rpc_values');

/** Stands in until the app's library brings its own. */
const noModel = {
  name: 'none',
  version: '0.0.0',
  getInvocationModel() {
    throw new WorkerError('the application has set no programming model; it needs the npm package @azure/functions, version 4');
  },
};

class App {
  hooks = new Hooks();
  hookData = {}; // shared by appStart and appTerminate hooks
  appHookData = {}; // shared by all hooks
  model = noModel;
  directory = undefined; // set once an app has been loaded, well or not
  failure = undefined; // why the app did not load; remembered, because Node would not load it again
  #functions = new Map();
  #registrationOpen = true;

  get isLoaded() {
    return this.directory !== undefined;
  }

  get functions() {
    return [...this.#functions.values()];
  }

  function(id) {
    return this.#functions.get(id);
  }

  /** From the host's first question on, what it was told must stay true. */
  closeRegistration() {
    if (this.isLoaded) this.#registrationOpen = false;
  }

  register(metadata, callback) {
    const name = metadata?.name;
    if (typeof name !== 'string' || name === '') throw new WorkerError('a function needs a name');
    if (typeof callback !== 'function') throw new WorkerError(`function '${name}' needs a handler, which is a function`);
    if (!this.#registrationOpen) {
      throw new WorkerError(`function '${name}' was registered too late: functions are registered while the application loads`);
    }
    if (this.#functions.has(name)) {
      throw new WorkerError(`there are two functions with the name '${name}'; give one of them another name`);
    }
    const registered = { metadata: { ...metadata, functionId: name }, rpcMetadata: toFunctionMetadata(metadata), callback };
    this.#functions.set(name, registered);
    return new Disposable(() => this.#registrationOpen && this.#functions.delete(name));
  }

  setModel(model) {
    if (!this.#registrationOpen) throw new WorkerError('the programming model can only be set while the application loads');
    this.model = model;
  }

  /** @throws {WorkerError} when load() would refuse; nothing has changed then */
  checkLoadable(directory) {
    if (this.isLoaded) {
      throw new WorkerError(
        `this worker already holds the application in ${this.directory}, and a Node process loads an application only once: ` +
          'start a fresh process',
      );
    }
    if (directory && !fs.statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new WorkerError(`the application's folder ${directory} is not there, or is not a folder`);
    }
  }

  /**
   * Loads the entry points and runs the appStart hooks. An app that fails is remembered in `failure`.
   * @throws {WorkerError} when checkLoadable() does; nothing was loaded then
   */
  async load(directory) {
    this.checkLoadable(directory);
    this.directory = directory;
    try {
      for (const file of findEntryPoints(directory)) await loadEntryPoint(directory, file);
      const fixed = { hookData: this.hookData, appHookData: this.appHookData };
      await this.hooks.run('appStart', hookContext(fixed, { functionAppDirectory: directory }));
    } catch (error) {
      this.failure = error;
    }
  }

  async terminate() {
    await this.hooks.run('appTerminate', hookContext({ hookData: this.hookData, appHookData: this.appHookData }));
  }
}

module.exports = { App };
