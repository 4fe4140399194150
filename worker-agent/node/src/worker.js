// The worker's side of FunctionRpc: which message gets which answer, and in which order. What changes the app is done one after
// the other; status and invocations of a loaded app wait for nothing.
'use strict';

const { invoke } = require('./invocation');
const { takeCapabilities } = require('./http_listener');
const { WorkerError, failure, success } = require('./errors');
const { replaceEnvironment } = require('./environment');

// What the runtime may rely on; the values are words of the protocol.
const capabilities = [
  'RawHttpBodyBytes', 'RpcHttpTriggerMetadataRemoved', 'RpcHttpBodyOnly', 'IgnoreEmptyValuedRpcHttpHeaders',
  'UseNullableValueDictionaryForHttp', 'WorkerStatus', 'TypedDataCollection', 'HandlesWorkerTerminateMessage',
];
const unansweredOnPurpose = new Set(['invocationCancel', 'fileChangeEventRequest', 'closeSharedMemoryResourcesRequest']);

class Worker {
  #parts;
  #steps = Promise.resolve(); // what changes the app, one after the other
  #inFlight = new Set();
  #isEnding = false;
  #appCapabilities;
  hostVersion = '';

  /** @param {{app: object, logs: object, channel: object, version: string}} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  get inFlightCount() {
    return this.#inFlight.size;
  }

  /** Takes every message but WorkerTerminate, which ends the process and is its owner's. */
  handle(message) {
    const { requestId, content } = message;
    const answer = (name, value) => this.#parts.channel.send({ requestId, [name]: value });
    const body = message[content];
    switch (content) {
      case 'workerInitRequest':
        return this.#step(async () => answer('workerInitResponse', await this.#init(body)));
      case 'functionEnvironmentReloadRequest':
        return this.#step(async () => answer('functionEnvironmentReloadResponse', await this.#reload(body)));
      case 'functionsMetadataRequest':
        return this.#step(() => answer('functionMetadataResponse', this.#metadata()));
      case 'functionLoadRequest':
        return this.#step(() => answer('functionLoadResponse', this.#load(body)));
      case 'functionLoadRequestCollection': {
        const all = () => ({ functionLoadResponses: body.functionLoadRequests.map((each) => this.#load(each)) });
        return this.#step(() => answer('functionLoadResponseCollection', all()));
      }
      case 'workerStatusRequest':
        return answer('workerStatusResponse', {});
      case 'invocationRequest':
        return this.#invoke(body, (response) => answer('invocationResponse', response));
      default:
        if (!unansweredOnPurpose.has(content)) {
          this.#parts.logs.system('error', `the host sent '${content ?? 'a message without content'}', which this worker does not know`);
        }
    }
  }

  /** No new invocations; resolves when those in flight are over, or after `waitMs`. */
  async drain(waitMs) {
    this.#isEnding = true;
    if (this.#inFlight.size === 0 || waitMs <= 0) return;
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, waitMs)));
    await Promise.race([Promise.allSettled([...this.#inFlight]), late]);
    clearTimeout(timer);
  }

  /** Steps answer their own failures: one that rejects is a bug of ours, and must not stop the ones after it. */
  #step(action) {
    this.#steps = this.#steps.then(action).catch((error) => {
      this.#parts.logs.system('critical', `the worker failed to handle a message: ${error.stack}`);
    });
  }

  #invoke(request, answer) {
    if (this.#isEnding) {
      return answer({ invocationId: request.invocationId, result: failure(new WorkerError('this worker is ending')) });
    }
    const { app, logs } = this.#parts;
    const unsendable = (error) => answer({ invocationId: request.invocationId, result: failure(error) });
    const running = this.#steps.then(() => invoke({ app, logs, request })).then(answer).catch(unsendable);
    this.#inFlight.add(running);
    running.finally(() => this.#inFlight.delete(running));
  }

  async #init(request) {
    this.hostVersion = request.hostVersion;
    const { app, version } = this.#parts;
    try {
      // An agent that dials again asks again: the app stays as it is.
      if (request.functionAppDirectory && !app.isLoaded) await this.#loadApp(request.functionAppDirectory);
      return { workerVersion: version, workerMetadata: this.#describe(), capabilities: await this.#capabilities(), result: success() };
    } catch (error) {
      return { workerVersion: version, workerMetadata: this.#describe(), result: failure(error) };
    }
  }

  async #reload({ environmentVariables, functionAppDirectory }) {
    const { app } = this.#parts;
    try {
      const load = (directory) => this.#loadApp(directory);
      await replaceEnvironment({ app, environmentVariables, functionAppDirectory, load });
      return {
        workerMetadata: this.#describe(),
        capabilities: await this.#capabilities(),
        capabilitiesUpdateStrategy: 'replace',
        result: success(),
      };
    } catch (error) {
      return { workerMetadata: this.#describe(), result: failure(error) };
    }
  }

  async #loadApp(directory) {
    const { app, logs } = this.#parts;
    await app.load(directory);
    if (app.failure) {
      logs.system('error', `the application in ${directory} failed to load: ${app.failure.stack ?? app.failure}`);
      process.stderr.write(`LanguageWorkerConsoleLog[error] the application failed to load: ${app.failure.message ?? app.failure}\n`);
    } else {
      logs.system('debug', `the application in ${directory} registered ${app.functions.length} functions`);
    }
  }

  #metadata() {
    const { app } = this.#parts;
    app.closeRegistration();
    if (app.failure) return { result: failure(app.failure) };
    const results = app.functions.map(({ rpcMetadata }) => ({ ...rpcMetadata, directory: app.directory, status: success() }));
    return { functionMetadataResults: results, useDefaultMetadataIndexing: results.length === 0, result: success() };
  }

  #load({ functionId, metadata }) {
    const { app } = this.#parts;
    app.closeRegistration();
    let result = success();
    if (app.failure) {
      result = failure(app.failure);
    } else if (!app.function(functionId)) {
      const name = metadata?.name || functionId;
      const reason = metadata?.scriptFile
        ? `function '${name}' is described by a function.json, which this worker does not run: register it with @azure/functions version 4`
        : `the application has registered no function '${name}'`;
      result = failure(new WorkerError(reason));
    }
    return { functionId, result };
  }

  async #capabilities() {
    const { app } = this.#parts;
    const ours = Object.fromEntries(capabilities.map((name) => [name, 'true']));
    // The library allows no set-up once it was asked, and may begin to listen: it is asked once, when the app is there.
    if (app.isLoaded && !app.failure) this.#appCapabilities ??= await takeCapabilities(app.model, ours);
    return this.#appCapabilities ?? ours;
  }

  #describe() {
    const { app, version } = this.#parts;
    return {
      runtimeName: 'node',
      runtimeVersion: process.versions.node,
      workerVersion: version,
      workerBitness: process.arch,
      customProperties: { modelName: app.model.name, modelVersion: app.model.version },
    };
  }
}

module.exports = { Worker };
