// GET /api/greet/Ada?loud=yes
const { app } = require('@azure/functions');

app.http('greet', {
  methods: ['GET', 'POST'],
  route: 'greet/{name}',
  authLevel: 'anonymous',
  handler: async (request, context) => {
    const name = request.params.name;
    context.log(`greeting ${name}`);
    const text = request.method === 'POST' ? await request.text() : 'Hello';
    const greeting = `${text}, ${name}`;
    return {
      status: 200,
      headers: { 'x-greeted': name },
      jsonBody: { greeting: request.query.get('loud') ? greeting.toUpperCase() : greeting },
    };
  },
});
