// Hooks: user code around the life of the app and around each invocation, in the order of registration.
'use strict';

const { WorkerError } = require('./errors');

const hookNames = ['preInvocation', 'postInvocation', 'appStart', 'appTerminate', 'log'];

class Disposable {
  #dispose;

  /** One that disposes all of them. */
  static from(...disposables) {
    return new Disposable(() => {
      for (const each of disposables) if (typeof each?.dispose === 'function') each.dispose();
    });
  }

  constructor(dispose) {
    this.#dispose = dispose;
  }

  dispose() {
    const dispose = this.#dispose;
    this.#dispose = undefined;
    return typeof dispose === 'function' ? dispose() : undefined;
  }
}

class Hooks {
  #callbacks = new Map(hookNames.map((name) => [name, []]));

  register(name, callback) {
    const callbacks = this.#callbacks.get(name);
    if (!callbacks) {
      const error = new WorkerError(`there is no hook '${name}'; hooks are ${hookNames.join(', ')}`);
      error.name = 'RangeError'; // by which the library knows that a worker is too old for a hook
      throw error;
    }
    if (typeof callback !== 'function') throw new WorkerError(`the hook '${name}' needs a function, not ${typeof callback}`);
    const entry = { callback };
    callbacks.push(entry);
    return new Disposable(() => {
      const at = callbacks.indexOf(entry);
      if (at >= 0) callbacks.splice(at, 1);
    });
  }

  has(name) {
    return this.#callbacks.get(name).length > 0;
  }

  /** One after the other; the first that throws ends it. */
  async run(name, context) {
    for (const { callback } of [...this.#callbacks.get(name)]) await callback(context);
  }

  /** For logs, which cannot wait. */
  runAtOnce(name, context) {
    for (const { callback } of [...this.#callbacks.get(name)]) callback(context);
  }
}

/** A context for hooks: `fixed` can be read only, `open` may be changed by a hook and is read back. */
function hookContext(fixed, open = {}) {
  const context = { ...open };
  for (const [name, value] of Object.entries(fixed)) {
    Object.defineProperty(context, name, {
      enumerable: true,
      get: () => value,
      set: () => {
        throw new WorkerError(`'${name}' of a hook's context cannot be replaced`);
      },
    });
  }
  return context;
}

module.exports = { Disposable, Hooks, hookContext };
