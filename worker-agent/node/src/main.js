// The Node language worker: wires the parts, opens the stream to the host, and owns how the process ends.
'use strict';

const { version } = require('../package.json');
const { App } = require('./app');
const { Channel } = require('./channel');
const { Logs } = require('./logs');
const { Worker } = require('./worker');
const { installCoreModule, makeCoreModule } = require('./core_module');
const { loadSchema } = require('./schema');
const { parseArguments, usage } = require('./arguments');

const exit = process.exit.bind(process); // User code may replace it.
const hostClosesMs = 250; // How long the host gets to end the stream after our half.
const endMarginMs = 500; // What of a grace period is kept for hooks and the last bytes.

/** Lines of the worker among those of user code begin with this word, as hosts expect. */
const tell = (level, text) => process.stderr.write(`LanguageWorkerConsoleLog[${level}] ${text}\n`);

function main() {
  let settings;
  try {
    settings = parseArguments(process.argv.slice(2));
  } catch (error) {
    process.stdout.write(`LanguageWorkerConsoleLog[error] ${error.message}\n${usage}\n`);
    return exit(1);
  }
  const app = new App();
  const channel = new Channel({ ...settings, schema: loadSchema() });
  const logs = new Logs({ channel, app });
  const worker = new Worker({ app, logs, channel, version });
  installCoreModule(makeCoreModule({ app, logs, version, hostVersion: () => worker.hostVersion }));

  let isEnding = false;
  const end = (code) => {
    isEnding = true;
    exit(code);
  };
  channel.on('message', (message) => {
    if (message.content !== 'workerTerminate') return worker.handle(message);
    if (isEnding) return;
    isEnding = true;
    terminate({ app, channel, logs, worker, graceMs: milliseconds(message.workerTerminate.gracePeriod) }).then(() => end(0));
  });
  channel.on('closed', (error) => {
    if (isEnding) return; // Whoever ends the process knows why.
    if (error) tell('error', `the stream to the host at ${settings.target} broke: ${error.message}`);
    end(error ? 1 : 0);
  });
  watchUserCode({ worker, end, isEnding: () => isEnding });
  channel.send({ requestId: settings.requestId, startStream: { workerId: settings.workerId } });
}

/** In-flight invocations get most of the grace period, then the app's own hooks what is left of it, then the last bytes. */
async function terminate({ app, channel, logs, worker, graceMs }) {
  const started = Date.now();
  await worker.drain(graceMs - endMarginMs);
  const complain = (text) => {
    tell('error', text);
    logs.system('error', text);
  };
  const hooks = app.terminate().catch((error) => complain(`an appTerminate hook failed: ${error?.stack ?? error}`));
  const leftMs = Math.max(endMarginMs, graceMs - (Date.now() - started)) - hostClosesMs;
  const late = new Promise((resolve) => setTimeout(resolve, leftMs, 'late'));
  if ((await Promise.race([hooks, late])) === 'late') complain('the appTerminate hooks took longer than the grace period');
  await new Promise((resolve) => channel.end(hostClosesMs, resolve));
}

/** After an exception that nobody caught, what the process holds cannot be trusted; its host starts another one. */
function watchUserCode({ worker, end, isEnding }) {
  process.on('uncaughtException', (error, origin) => {
    const what = origin === 'unhandledRejection' ? 'a promise of user code was rejected' : 'user code threw';
    tell('error', `${what} and nobody caught it: ${error?.stack ?? error}`);
    end(1);
  });
  process.on('exit', (code) => {
    if (isEnding()) return;
    tell('error', `user code ended the process with exit code ${code}, ${worker.inFlightCount} invocations were in flight`);
  });
}

function milliseconds(duration) {
  return duration ? Number(duration.seconds) * 1000 + duration.nanos / 1e6 : 0;
}

main();
