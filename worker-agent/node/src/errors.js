// Errors as FunctionRpc tells them. User code may throw anything, and what it throws must still become one readable answer.
'use strict';

const { inspect } = require('util');

/** Anything thrown, as an Error. */
function toError(thrown) {
  if (thrown instanceof Error) return thrown;
  // Errors of another realm (vm contexts) are no instances of our Error.
  if (thrown !== null && typeof thrown === 'object' && typeof thrown.message === 'string') {
    const error = new Error(thrown.message, { cause: thrown });
    if (typeof thrown.stack === 'string') error.stack = thrown.stack;
    return error;
  }
  const error = new Error(typeof thrown === 'string' ? thrown : inspect(thrown));
  error.stack = undefined; // A stack of ours would mislead.
  return error;
}

/** The RpcException of anything thrown. */
function toRpcException(thrown) {
  const error = toError(thrown);
  let message = String(error.message || error.name || 'Error');
  let stackTrace = typeof error.stack === 'string' ? error.stack : message;
  for (let cause = error.cause, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, ++depth) {
    stackTrace += `\ncaused by: ${cause.stack || cause.message}`;
  }
  return { message, stackTrace, type: error.name || 'Error' };
}

const success = () => ({ status: 'Success' });
const failure = (thrown) => ({ status: 'Failure', exception: toRpcException(thrown) });

/** An error of the worker, not of user code; the npm library tells the two apart by the flag. */
class WorkerError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'WorkerError';
    this.isAzureFunctionsSystemError = true;
  }
}

module.exports = { WorkerError, failure, success, toError, toRpcException };
