// A message of the queue "orders" in, the order's total out.
const { app } = require('@azure/functions');

app.storageQueue('processOrder', {
  queueName: 'orders',
  connection: 'AzureWebJobsStorage',
  retry: { strategy: 'fixedDelay', maxRetryCount: 3, delayInterval: { seconds: 5 } },
  handler: async (order, context) => {
    context.log(`order ${order.id} with ${order.items.length} items`);
    if (order.items.length === 0) throw new Error(`order ${order.id} is empty`);
    const total = order.items.reduce((sum, { price, quantity }) => sum + price * quantity, 0);
    return { id: order.id, total, items: order.items.length };
  },
});
