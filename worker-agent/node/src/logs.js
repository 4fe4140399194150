// Logs on their way to the host. User code's log hooks see, and may change, what user code and the npm library log.
'use strict';

const { hookContext } = require('./hooks');
const { toLevel, toLogCategory } = require('./rpc_values');

class Logs {
  #channel;
  #app;
  #inHook = false;

  constructor({ channel, app }) {
    this.#channel = channel;
    this.#app = app;
  }

  /** The worker's own words. */
  system(level, message) {
    this.#send(level, 'system', message);
  }

  /**
   * What the app or its library logs, in an invocation or outside of any.
   * @param {{invocationId: string, functionName: string, userContext?: object, hookData?: object}} [invocation]
   */
  fromApp(level, category, message, invocation) {
    const log = { level, message: String(message) };
    // A log written inside a log hook would call the hook again.
    if (this.#app.hooks.has('log') && !this.#inHook) this.#runHooks(log, category, invocation);
    this.#send(log.level, category, log.message, invocation);
  }

  #runHooks(log, category, invocation) {
    const context = hookContext(
      {
        category,
        invocationContext: invocation?.userContext,
        hookData: invocation?.hookData ?? this.#app.hookData,
        appHookData: this.#app.appHookData,
      },
      log,
    );
    this.#inHook = true;
    try {
      this.#app.hooks.runAtOnce('log', context);
      log.level = context.level;
      log.message = String(context.message);
    } catch (error) {
      this.system('error', `a log hook failed: ${error?.stack ?? error}`);
    } finally {
      this.#inHook = false;
    }
  }

  #send(level, category, message, invocation) {
    this.#channel.sendLog({
      invocationId: invocation?.invocationId ?? '',
      category: categoryName(invocation),
      level: toLevel(level),
      message,
      logCategory: toLogCategory(category),
    });
  }
}

/** As the official worker names them: what a function says and what is said about it in an invocation is one category. */
function categoryName(invocation) {
  return invocation ? `${invocation.functionName}.Invocation` : '';
}

module.exports = { Logs };
