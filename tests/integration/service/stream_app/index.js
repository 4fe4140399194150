// Functions that stream, and that remember what they feel of their callers; /api/notes tells it.
'use strict';

const diagnostics = require('diagnostics_channel');
const { app } = require('@azure/functions');

app.setup({ enableHttpStream: true });
const notes = [];
const note = (text) => notes.push(text);
const http = (name, methods, handler, route) => app.http(name, { methods, authLevel: 'anonymous', route, handler });

http('notes', ['GET'], async () => ({ jsonBody: notes }));

// What comes goes back at once.
http('echo', ['POST'], async (request) => ({ status: 201, headers: { 'x-echo': 'yes' }, body: request.body }));

http('count', ['POST'], async (request) => {
  let bytes = 0;
  try {
    for await (const chunk of request.body) bytes += chunk.length;
  } catch (error) {
    note(`left after ${bytes}`);
    throw error;
  }
  return { jsonBody: { bytes } };
});

http('about', ['GET'], async (request) => ({
  jsonBody: {
    id: request.params.id, asked: request.query.get('q'), sent: request.headers.get('x-sent'), empty: request.headers.get('x-empty'),
    url: request.url,
  },
}), 'about/{id}');

const told = async (request) => ({ jsonBody: { url: request.url, headers: [...request.headers] } });
app.http('locked', { methods: ['GET'], authLevel: 'function', handler: told });
app.http('chief', { methods: ['GET'], authLevel: 'admin', handler: told });

http('redirect', ['GET'], async () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/nowhere' } }));
http('fail', ['GET'], async () => { note('fail'); throw new Error('asked to'); });

// The library does not tell a function that the reader of its answer left; the worker's listener knows.
diagnostics.channel('http.server.request.start').subscribe(({ request, response }) => {
  response.on('close', () => response.writableFinished || note(`cut ${request.url}`));
});

// An answer that takes a minute.
http('drip', ['GET'], async () => {
  let left = 3000;
  const drop = (to) => (left-- > 0 ? to.enqueue(Buffer.from('drop\n')) : to.close());
  return { body: new ReadableStream({ pull: (to) => new Promise((resolve) => setTimeout(resolve, 20)).then(() => drop(to)) }) };
});

// More than anybody holds: the reader sets the pace.
http('flood', ['GET'], async () => {
  let left = 512;
  return { body: new ReadableStream({ pull: (to) => (left-- > 0 ? to.enqueue(Buffer.alloc(65536, left % 251)) : to.close()) }) };
});
