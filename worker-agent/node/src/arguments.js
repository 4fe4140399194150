// The command line: the two sets of arguments that hosts pass to language workers. Values stay text, whatever they look like.
'use strict';

const usage =
  'usage: node main.js --functions-uri http://HOST:PORT/ --functions-worker-id ID --functions-request-id ID ' +
  '--functions-grpc-max-message-length BYTES\n' +
  '   or: node main.js --host HOST --port PORT --workerId ID --requestId ID --grpcMaxMessageLength BYTES';

const messageBytesMax = 0x7fffffff;

/** `--name value` and `--name=value` pairs; a repeated name keeps its last value, words without a name are ignored. */
function readPairs(words) {
  const pairs = new Map();
  for (let i = 0; i < words.length; ++i) {
    const match = /^--([^=]+)(?:=(.*))?$/s.exec(words[i]);
    if (!match) continue;
    if (match[2] !== undefined) pairs.set(match[1], match[2]);
    else if (i + 1 < words.length && !words[i + 1].startsWith('--')) pairs.set(match[1], words[++i]);
    else pairs.set(match[1], '');
  }
  return pairs;
}

function targetOfUri(text) {
  let uri;
  try {
    uri = new URL(text);
  } catch {
    throw new Error(`--functions-uri '${text}' is no URI; write http://HOST:PORT/`);
  }
  if (uri.protocol !== 'http:') {
    throw new Error(`--functions-uri '${text}' must begin with http://; the host ends TLS in front of its workers`);
  }
  return `${uri.hostname}:${uri.port || 80}`;
}

/**
 * @param {string[]} words the command line without program and script
 * @returns {{target: string, workerId: string, requestId: string, messageBytesMax: number}}
 * @throws {Error} with one sentence that says what is missing or wrong
 */
function parseArguments(words) {
  const pairs = readPairs(words);
  const first = (...names) => names.map((name) => pairs.get(name)).find((value) => value);
  const required = (...names) => {
    const value = first(...names);
    if (!value) throw new Error(`the argument --${names[0]} is missing`);
    return value;
  };
  let target;
  if (pairs.get('functions-uri')) {
    target = targetOfUri(pairs.get('functions-uri'));
  } else {
    if (!pairs.get('host') || !pairs.get('port')) throw new Error('the argument --functions-uri is missing');
    target = `${pairs.get('host')}:${pairs.get('port')}`;
  }
  const limit = first('functions-grpc-max-message-length', 'grpcMaxMessageLength') ?? String(messageBytesMax);
  if (!/^[1-9][0-9]{0,9}$/.test(limit) || Number(limit) > messageBytesMax) {
    throw new Error(`--functions-grpc-max-message-length '${limit}' must be a number of bytes from 1 to ${messageBytesMax}`);
  }
  return {
    target,
    workerId: required('functions-worker-id', 'workerId'),
    requestId: required('functions-request-id', 'requestId'),
    messageBytesMax: Number(limit),
  };
}

module.exports = { parseArguments, usage };
