// The one stream to the host: sends in order, keeps waiting logs bounded, never sends what would break the stream, and says
// once how the stream ended. There is no second try: who started this process starts another one.
'use strict';

const { EventEmitter } = require('events');
const grpc = require('@grpc/grpc-js');
const { WorkerError, failure } = require('./errors');

const waitingLogBytesMax = 64 * 1024 * 1024; // The official worker has no bound, and dies of a flood.
const envelopeBytes = 1024; // What a cut log needs around its text.

/** Events: 'message' (decoded StreamingMessage), 'closed' (undefined after a clean end, else an Error). */
class Channel extends EventEmitter {
  #call;
  #client;
  #schema;
  #bytesMax;
  #waitingLogBytes = 0;
  #droppedLogs = 0;
  #closed = false;

  constructor({ target, messageBytesMax, schema }) {
    super();
    this.#schema = schema;
    this.#bytesMax = messageBytesMax;
    this.#client = new grpc.Client(target, grpc.credentials.createInsecure(), {
      'grpc.max_send_message_length': messageBytesMax,
      'grpc.max_receive_message_length': messageBytesMax,
      'grpc.enable_http_proxy': 0, // The host is on this machine, whatever the environment says about proxies.
    });
    const same = (bytes) => bytes;
    this.#call = this.#client.makeBidiStreamRequest(schema.path, same, schema.decode, new grpc.Metadata());
    this.#call.on('data', (message) => this.emit('message', message));
    this.#call.on('error', (error) => this.#handleClosed(error));
    this.#call.on('status', (status) => status.code === grpc.status.OK && this.#handleClosed());
  }

  /** Sends a message; an answer too large for the stream is replaced by a Failure that says so. */
  send(message) {
    if (this.#closed) return;
    let bytes = this.#schema.encode(message);
    if (bytes.length > this.#bytesMax) bytes = this.#schema.encode(this.#explainSize(message, bytes.length));
    this.#call.write(bytes);
  }

  /** Sends an RpcLog. A flood of logs must not fill the memory: beyond the bound they are counted, and the count is told. */
  sendLog(log) {
    if (this.#closed) return;
    if (this.#waitingLogBytes >= waitingLogBytesMax) {
      ++this.#droppedLogs;
      return;
    }
    if (this.#droppedLogs > 0) {
      const message = `${this.#droppedLogs} log messages were dropped, because they came faster than the host read them`;
      this.#droppedLogs = 0;
      this.#writeLog({ level: 'Warning', logCategory: 'System', category: '', message });
    }
    this.#writeLog(log);
  }

  /** Half-closes; `done` is called when the host has answered that, or after `waitMs`. */
  end(waitMs, done) {
    let called = false;
    const once = () => {
      if (!called) done();
      called = true;
    };
    if (this.#closed) return once();
    this.once('closed', once);
    setTimeout(once, waitMs);
    this.#call.end();
  }

  #writeLog(log) {
    let bytes = this.#schema.encode({ rpcLog: log });
    if (bytes.length > this.#bytesMax) {
      const kept = Math.max(0, Math.floor((this.#bytesMax - envelopeBytes) / 4)); // a character has up to four bytes
      bytes = this.#schema.encode({ rpcLog: { ...log, message: `${String(log.message).slice(0, kept)} ... (cut)` } });
      if (bytes.length > this.#bytesMax) return;
    }
    this.#waitingLogBytes += bytes.length;
    this.#call.write(bytes, () => (this.#waitingLogBytes -= bytes.length));
  }

  #explainSize(message, bytes) {
    const result = failure(new WorkerError(`the answer has ${bytes} bytes, more than a message's limit of ${this.#bytesMax} bytes`));
    const answer = { requestId: message.requestId };
    if (message.invocationResponse) {
      answer.invocationResponse = { invocationId: message.invocationResponse.invocationId, result };
    } else if (message.functionMetadataResponse) {
      answer.functionMetadataResponse = { result };
    }
    return answer;
  }

  #handleClosed(error) {
    if (this.#closed) return;
    this.#closed = true;
    this.#client.close();
    this.emit('closed', error);
  }
}

module.exports = { Channel };
