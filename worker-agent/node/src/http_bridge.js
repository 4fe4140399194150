// Apps that turn on HTTP streams (app.setup({ enableHttpStream: true })) take requests on a listener of their own, which a host
// is meant to call beside FunctionRpc. Our host and its workers need not share a machine, so the worker itself makes that call:
// the app streams to and from it, and the host sees an ordinary RpcHttp. The listener is held on the loopback.
'use strict';

const http = require('http');
const { WorkerError } = require('./errors');

const bodyBytesMax = 0x7fffffff - 65536; // More does not fit into an answer.

/** Nothing to do: the request and the answer travel in FunctionRpc. */
const noExchange = { race: (promise) => promise, finish: async (response) => response, close: () => {} };

class HttpBridge {
  #port;

  /** Asks the model for its capabilities, and keeps for itself the address of a listener among them. */
  async takeCapabilities(model, capabilities) {
    if (typeof model.getCapabilities !== 'function') return capabilities;
    const { HttpUri: uri, ...others } = await onLoopback(() => model.getCapabilities(capabilities));
    if (uri) this.#port = Number(new URL(uri).port);
    return others;
  }

  /** The exchange of one invocation. */
  begin(registered, request) {
    if (this.#port === undefined) return noExchange;
    const isTrigger = ({ type }) => String(type).toLowerCase() === 'httptrigger';
    const input = request.inputData.find(({ name }) => isTrigger(registered.metadata.bindings[name] ?? {}));
    if (!input?.data?.http) return noExchange;
    addRouteParameters(request, input.data.http);
    return new Exchange(this.#port, request.invocationId, input.data.http);
  }
}

/** The library reads route parameters and headers of a streamed request from the trigger's metadata. */
function addRouteParameters(request, rpcHttp) {
  const parameters = plain(rpcHttp.nullableParams, rpcHttp.params);
  for (const [name, value] of Object.entries(parameters)) request.triggerMetadata[name] ??= { string: value };
  request.triggerMetadata.Headers ??= { json: JSON.stringify(plain(rpcHttp.nullableHeaders, rpcHttp.headers)) };
}

class Exchange {
  #call;
  #answer;
  #failed; // rejects when the call cannot be made; never resolves

  constructor(port, invocationId, rpcHttp) {
    const url = new URL(rpcHttp.url);
    const headers = {
      ...plain(rpcHttp.nullableHeaders, rpcHttp.headers),
      'x-ms-invocation-id': invocationId,
      'x-forwarded-host': url.host,
      'x-forwarded-proto': url.protocol.slice(0, -1),
    };
    for (const name of Object.keys(headers)) {
      if (/^(host|connection|content-length|transfer-encoding|expect|upgrade)$/i.test(name)) delete headers[name];
    }
    const body = bodyOf(rpcHttp.body);
    this.#answer = new Promise((resolve, reject) => {
      const path = url.pathname + url.search;
      this.#call = http.request({ host: '127.0.0.1', port, method: rpcHttp.method, path, headers, agent: false });
      this.#call.on('response', (response) => collect(response).then(resolve, reject));
      this.#call.on('error', reject);
      this.#call.end(body);
    });
    this.#answer.catch(() => {}); // It may be nobody's any more.
    this.#failed = new Promise((_, reject) => this.#answer.catch(reject));
    this.#failed.catch(() => {});
  }

  race(promise) {
    return Promise.race([promise, this.#failed]);
  }

  /** The streamed answer in the place where an ordinary one would be. Of a function that returned nothing the library streams nothing. */
  async finish(response, result) {
    if (response.returnValue || result === undefined || result === null) return response;
    return { ...response, returnValue: { http: await this.#answer } };
  }

  close() {
    this.#call.destroy();
  }
}

async function collect(response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new WorkerError('the streamed answer is larger than a message can be');
    chunks.push(chunk);
  }
  const headers = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (/^(connection|date|keep-alive|transfer-encoding|x-ms-invocation-id)$/.test(name)) continue;
    if (name !== 'set-cookie') headers[name] = String(value);
  }
  const cookies = (response.headers['set-cookie'] ?? []).map(readCookie);
  return { statusCode: String(response.statusCode), headers, cookies, body: { bytes: Buffer.concat(chunks) } };
}

/** A Set-Cookie line of the library as an RpcHttpCookie in the library's own spelling. */
function readCookie(line) {
  const [pair, ...attributes] = line.split(/;\s*/);
  const at = pair.indexOf('=');
  const cookie = { name: pair.slice(0, at), value: safeDecode(pair.slice(at + 1)) };
  for (const attribute of attributes) {
    const [name, value = ''] = attribute.split(/=(.*)/s);
    switch (name.toLowerCase()) {
      case 'domain': cookie.domain = { value }; break;
      case 'path': cookie.path = { value }; break;
      case 'max-age': cookie.maxAge = { value: Number(value) }; break;
      case 'secure': cookie.secure = { value: true }; break;
      case 'httponly': cookie.httpOnly = { value: true }; break;
      case 'expires': cookie.expires = { value: { seconds: Math.floor(Date.parse(value) / 1000) } }; break;
      case 'samesite': cookie.sameSite = value.toLowerCase() === 'none' ? 'explicitNone' : value.toLowerCase(); break;
    }
  }
  return cookie;
}

function safeDecode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function bodyOf(data) {
  if (data?.bytes) return Buffer.from(data.bytes);
  if (data?.stream) return Buffer.from(data.stream);
  return data?.string ?? data?.json;
}

function plain(nullable, ordinary) {
  const entries = Object.entries(nullable ?? {});
  return entries.length > 0 ? Object.fromEntries(entries.map(([name, value]) => [name, value?.value ?? ''])) : { ...ordinary };
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

module.exports = { HttpBridge };
