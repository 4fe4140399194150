'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { parseArguments } = require('../../../../worker-agent/node/src/arguments');

const modern = ['--functions-uri', 'http://127.0.0.1:4000/', '--functions-worker-id', 'w', '--functions-request-id', 'r'];

test('Arguments.BothSetsGiveTheSame', () => {
  const expected = { target: '127.0.0.1:4000', workerId: 'w', requestId: 'r', messageBytesMax: 1000 };
  assert.deepEqual(parseArguments([...modern, '--functions-grpc-max-message-length', '1000']), expected);
  const older = ['--host', '127.0.0.1', '--port', '4000', '--workerId', 'w', '--requestId', 'r', '--grpcMaxMessageLength', '1000'];
  assert.deepEqual(parseArguments(older), expected);
  assert.deepEqual(parseArguments([...older, ...modern]), expected);
});

test('Arguments.ValuesStayText', () => {
  assert.equal(parseArguments([...modern, '--functions-worker-id=0123']).workerId, '0123');
  assert.equal(parseArguments([...modern, '--functions-worker-id', 'a=b']).workerId, 'a=b');
});

test('Arguments.AddressesOfVersionSixKeepTheirBrackets', () => {
  assert.equal(parseArguments([...modern, '--functions-uri', 'http://[::1]:5/']).target, '[::1]:5');
});

test('Arguments.WithoutALimitMessagesMayBeAsLargeAsTheProtocolAllows', () => {
  assert.equal(parseArguments(modern).messageBytesMax, 2147483647);
});

test('Arguments.WrongOnesAreNamed', () => {
  assert.throws(() => parseArguments([...modern, '--functions-uri', 'https://h:1/']), /must begin with http:\/\//);
  assert.throws(() => parseArguments([...modern, '--functions-uri', 'nonsense']), /is no URI/);
  assert.throws(() => parseArguments([...modern, '--functions-grpc-max-message-length', '-1']), /number of bytes/);
  assert.throws(() => parseArguments([...modern, '--functions-grpc-max-message-length', '4294967296']), /number of bytes/);
  assert.throws(() => parseArguments(modern.slice(0, 4)), /--functions-request-id is missing/);
  assert.throws(() => parseArguments([...modern, '--functions-worker-id']), /--functions-worker-id is missing/);
});
