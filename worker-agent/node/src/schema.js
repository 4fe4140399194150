// FunctionRpc in JavaScript: the project's own .proto, read at start. Objects have camelCase names, enums are names, an unset
// member of a oneof is absent and every other field has its default, which is what the npm library expects to find.
'use strict';

const fs = require('fs');
const path = require('path');
const protoLoader = require('@grpc/proto-loader');

// A packed worker carries its own copy; in the source tree there is only one.
const places = [
  path.join(__dirname, '..', 'function_rpc.proto'),
  path.join(__dirname, '..', '..', '..', 'schema', 'proto', 'function_rpc.proto'),
];

function loadSchema() {
  const file = places.find((place) => fs.existsSync(place));
  if (!file) throw new Error(`function_rpc.proto is missing; looked for ${places.join(' and ')}`);
  const definitions = protoLoader.loadSync(file, { enums: String, defaults: true, oneofs: true });
  const { EventStream } = definitions['AzureFunctionsRpcMessages.FunctionRpc'];
  return {
    path: EventStream.path,
    encode: EventStream.requestSerialize,
    decode: EventStream.responseDeserialize,
  };
}

module.exports = { loadSchema };
