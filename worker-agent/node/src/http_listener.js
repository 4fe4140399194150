// Apps that turn on HTTP streams (app.setup({ enableHttpStream: true })) take requests on a listener of the npm library's, which
// the host calls beside FunctionRpc. Where it listens is a capability, HttpUri. The host here is an agent on this machine, so the
// listener is held on the loopback: the library itself would listen everywhere.
'use strict';

const http = require('http');

/** Asks the model for its capabilities, which may make it listen. */
async function takeCapabilities(model, capabilities) {
  if (typeof model.getCapabilities !== 'function') return capabilities;
  const taken = await onLoopback(() => model.getCapabilities(capabilities));
  // The library says localhost, which may also mean the other loopback, where nobody listens.
  if (taken.HttpUri) taken.HttpUri = taken.HttpUri.replace('//localhost:', '//127.0.0.1:');
  return taken;
}

/** Runs `action` while listeners that name no address get the loopback's. */
async function onLoopback(action) {
  const listen = http.Server.prototype.listen;
  http.Server.prototype.listen = function (...words) {
    const namesNothing = words.length === 0 || typeof words[0] === 'function';
    return namesNothing ? listen.call(this, { host: '127.0.0.1', port: 0 }, ...words) : listen.apply(this, words);
  };
  try {
    return await action();
  } finally {
    http.Server.prototype.listen = listen;
  }
}

module.exports = { takeCapabilities };
