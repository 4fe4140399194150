// Values between the npm library and the wire. The library writes enums in lower camel case ('information', 'fixedDelay'), the
// .proto writes them its own way; a name that the encoder does not know would silently become the enum's zero.
'use strict';

const { WorkerError } = require('./errors');

const levels = {
  trace: 'Trace', debug: 'Debug', information: 'Information', warning: 'Warning', error: 'Error', critical: 'Critical', none: 'None',
};
const logCategories = { user: 'User', system: 'System', customMetric: 'CustomMetric' };
const directions = { in: 'in', out: 'out', inout: 'inout' };
const dataTypes = { undefined: 'undefined', string: 'string', binary: 'binary', stream: 'stream' };
const retryStrategies = { fixedDelay: 'fixed_delay', exponentialBackoff: 'exponential_backoff' };
const sameSites = { none: 'None', lax: 'Lax', strict: 'Strict', explicitNone: 'ExplicitNone' };

const own = (object, key) => (Object.prototype.hasOwnProperty.call(object, key) ? object[key] : undefined);

function named(table, value, what, otherwise) {
  if (value === undefined || value === null) return otherwise;
  const name = own(table, value);
  if (name === undefined) throw new WorkerError(`${what} '${value}' is not known; it is one of ${Object.keys(table).join(', ')}`);
  return name;
}

// A log is never worth an exception in user code.
const toLevel = (level) => own(levels, level) ?? 'Information';
const toLogCategory = (category) => own(logCategories, category) ?? 'User';

/** The RpcFunctionMetadata of what registerFunction was given. Throws what the app's author should read. */
function toFunctionMetadata(metadata) {
  const bindings = {};
  const rawBindings = [];
  for (const [name, binding] of Object.entries(metadata.bindings ?? {})) {
    const where = `function '${metadata.name}', binding '${name}'`;
    bindings[name] = {
      type: binding.type ?? '',
      direction: named(directions, binding.direction, `${where}: direction`, 'in'),
      dataType: named(dataTypes, binding.dataType, `${where}: dataType`, 'undefined'),
      properties: binding.properties ?? {},
    };
    rawBindings.push(JSON.stringify({ ...binding, name, direction: binding.direction ?? 'in' }));
  }
  return {
    name: metadata.name,
    functionId: metadata.name,
    language: 'node',
    bindings,
    rawBindings,
    retryOptions: toRetryOptions(metadata),
  };
}

function toRetryOptions({ name, retryOptions: options }) {
  if (!options) return undefined;
  return {
    maxRetryCount: options.maxRetryCount ?? 0,
    retryStrategy: named(retryStrategies, options.retryStrategy, `function '${name}': retry strategy`, 'exponential_backoff'),
    delayInterval: options.delayInterval,
    minimumInterval: options.minimumInterval,
    maximumInterval: options.maximumInterval,
  };
}

/** TypedData of the library as the encoder wants it. */
function toTypedData(data) {
  if (data === undefined || data === null) return undefined;
  // Whole numbers that 64 bits or a JavaScript number cannot hold exactly were never integers to their author.
  if (typeof data.int === 'number' && !Number.isSafeInteger(data.int)) return { double: data.int };
  if (data.http) return { http: toHttp(data.http) };
  return data;
}

function toHttp(http) {
  return {
    ...http,
    body: toTypedData(http.body),
    cookies: (http.cookies ?? []).map((cookie) => ({ ...cookie, sameSite: own(sameSites, cookie.sameSite) ?? 'None' })),
  };
}

/** The InvocationResponse of what the library's getResponse gave. */
function toInvocationResponse(response) {
  return {
    outputData: (response.outputData ?? []).map(({ name, data }) => ({ name, data: toTypedData(data) })),
    returnValue: toTypedData(response.returnValue),
  };
}

/** TypedData from the wire for the library: whole numbers become numbers where one holds them exactly, else stay Long objects. */
function fromTypedData(data) {
  if (!data) return data;
  if (data.int !== undefined) data.int = fromLong(data.int);
  if (data.collectionSint64?.sint64) data.collectionSint64.sint64 = data.collectionSint64.sint64.map(fromLong);
  return data;
}

function fromLong(value) {
  if (typeof value === 'number') return value;
  const number = value.toNumber();
  return Number.isSafeInteger(number) ? number : value;
}

/** An InvocationRequest from the wire for the library. */
function fromInvocationRequest(request) {
  for (const input of request.inputData) {
    if (input.rpcSharedMemory) throw new WorkerError(`input '${input.name}' is in shared memory, which this worker does not support`);
    fromTypedData(input.data);
  }
  for (const value of Object.values(request.triggerMetadata)) fromTypedData(value);
  return request;
}

module.exports = { fromInvocationRequest, toFunctionMetadata, toInvocationResponse, toLevel, toLogCategory };
