// A FunctionRpc host for tests: a real gRPC server on a free port, the real worker process behind it, and every message of the
// worker in one list in the order of arrival. Tests say what is sent; nothing is answered by itself.
'use strict';

const { EventEmitter, once } = require('events');
const { createRequire } = require('module');
const { spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const root = path.join(__dirname, '..', '..', '..');
const workerFolder = path.join(root, 'worker-agent', 'node');
const sampleApp = path.join(root, 'docs', 'examples', 'node-app');
const workerModules = createRequire(path.join(workerFolder, 'package.json'));
const waitMsMax = 20000;

for (const folder of [workerFolder, sampleApp]) {
  if (!fs.existsSync(path.join(folder, 'node_modules'))) throw new Error(`${folder} has no node_modules; run ./dev setup`);
}
const grpc = workerModules('@grpc/grpc-js');
const { FunctionRpc } = grpc.loadPackageDefinition(
  workerModules('@grpc/proto-loader').loadSync(path.join(root, 'schema', 'proto', 'function_rpc.proto'), {
    enums: String, longs: Number, oneofs: true, defaults: true,
  }),
).AzureFunctionsRpcMessages;

/** Waits for a promise, but not for ever, and then says for what. */
async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${waitMsMax} ms for ${typeof what === 'function' ? what() : what}`)), waitMsMax);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

class ScriptedHost extends EventEmitter {
  messages = []; // all of the worker's, as they came
  stdout = '';
  stderr = '';
  exit = undefined; // promise of {code, signal}
  #server = new grpc.Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 });
  #call;
  #requests = 0;

  /** Listens, then starts a worker and waits for its StartStream. */
  static async start(t, options = {}) {
    const host = new ScriptedHost();
    t.after(() => host.close());
    await host.listen();
    host.spawn(options);
    await host.next('startStream');
    return host;
  }

  async listen() {
    this.setMaxListeners(0); // one for each answer that is waited for
    this.#server.addService(FunctionRpc.service, {
      EventStream: (call) => {
        this.#call = call;
        call.on('data', (message) => {
          this.messages.push(message);
          this.emit('message', message);
        });
        call.on('end', () => call.end());
        call.on('error', () => {});
      },
    });
    this.port = await new Promise((resolve, reject) => {
      const credentials = grpc.ServerCredentials.createInsecure();
      this.#server.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port)));
    });
  }

  spawn({ args, env = {}, messageBytesMax = 2147483647 } = {}) {
    const words = args?.(this.port) ?? [
      '--functions-uri', `http://127.0.0.1:${this.port}/`, '--functions-worker-id', 'worker-1',
      '--functions-request-id', 'start-1', '--functions-grpc-max-message-length', String(messageBytesMax),
    ];
    this.process = spawn(process.execPath, [path.join(workerFolder, 'src', 'main.js'), ...words], {
      env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process.stdout.on('data', (text) => (this.stdout += text));
    this.process.stderr.on('data', (text) => (this.stderr += text));
    this.exit = once(this.process, 'close').then(([code, signal]) => ({ code, signal }));
  }

  send(content, body, requestId = `request-${++this.#requests}`) {
    this.#call.write({ requestId, [content]: body });
    return requestId;
  }

  /** The first message, from `from` on, with this content that `accept` takes. */
  async next(content, accept = () => true, from = 0) {
    const fits = (message) => message.content === content && accept(message);
    const found = this.messages.slice(from).find(fits);
    if (found) return found;
    const arrived = new Promise((resolve, reject) => {
      const look = (message) => fits(message) && (this.off('message', look), resolve(message));
      this.on('message', look);
      this.exit?.then(({ code }) => reject(new Error(`the worker ended with ${code} before ${content}: ${this.stderr}`)));
    });
    return within(arrived, () => `${content}; had ${this.messages.map((each) => each.content)}; stderr: ${this.stderr}`);
  }

  /** Sends and gives the answer's body; the answer must carry the request's id. */
  async ask(content, body, answer) {
    const requestId = this.send(content, body);
    return (await this.next(answer, (message) => message.requestId === requestId))[answer];
  }

  init(functionAppDirectory = '') {
    return this.ask('workerInitRequest', { hostVersion: '4.0.0', functionAppDirectory }, 'workerInitResponse');
  }

  metadata() {
    return this.ask('functionsMetadataRequest', {}, 'functionMetadataResponse');
  }

  load(functionId, metadata = { name: functionId }) {
    return this.ask('functionLoadRequest', { functionId, metadata }, 'functionLoadResponse');
  }

  reload(functionAppDirectory, environmentVariables = {}) {
    const request = { functionAppDirectory, environmentVariables };
    return this.ask('functionEnvironmentReloadRequest', request, 'functionEnvironmentReloadResponse');
  }

  invoke(functionId, inputData, more = {}) {
    const invocationId = `invocation-${++this.#requests}`;
    return this.ask('invocationRequest', { invocationId, functionId, inputData, ...more }, 'invocationResponse');
  }

  /** A worker with an app, asked and loaded: the names of its triggers' bindings by function. */
  async bringUp(directory) {
    await this.init(directory);
    const { functionMetadataResults: functions } = await this.metadata();
    this.trigger = {};
    for (const { name, bindings } of functions) {
      await this.load(name);
      this.trigger[name] = Object.keys(bindings).find((binding) => /trigger$/i.test(bindings[binding].type));
    }
    return functions;
  }

  /** Invokes with one input, the trigger's. */
  fire(name, data, more) {
    return this.invoke(name, [{ name: this.trigger[name], data }], more);
  }

  logs(invocationId) {
    return this.messages.filter(({ rpcLog }) => rpcLog?.invocationId === invocationId).map(({ rpcLog }) => rpcLog);
  }

  endStream() {
    this.#call.end();
  }

  failStream() {
    this.#call.emit('error', { code: grpc.status.INTERNAL, details: 'the test broke the stream' });
  }

  ended() {
    return within(this.exit, () => `the worker's end; stderr: ${this.stderr}`);
  }

  async close() {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGKILL');
    await this.exit;
    this.#server.forceShutdown();
  }
}

/** A folder with these files and the sample app's npm packages. */
function makeApp(t, files, manifest = { main: 'index.js' }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'windlass-node-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  fs.symlinkSync(path.join(sampleApp, 'node_modules'), path.join(folder, 'node_modules'));
  if (manifest) fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

const json = (value) => ({ json: JSON.stringify(value) });

module.exports = { ScriptedHost, json, makeApp, sampleApp, workerFolder };
