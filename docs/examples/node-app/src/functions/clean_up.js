const { app } = require('@azure/functions');

app.timer('cleanUp', {
  schedule: '0 */5 * * * *',
  handler: async (timer, context) => {
    context.log(timer.isPastDue ? 'cleaning up, late' : 'cleaning up');
  },
});
