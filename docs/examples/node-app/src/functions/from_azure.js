// Messages of a Service Bus queue, one by one, and events of an event hub, in batches.
const { app } = require('@azure/functions');

app.serviceBusQueue('shipOrder', {
  queueName: 'shipments',
  connection: 'ServiceBusConnection',
  handler: async (shipment, context) => {
    context.log(`shipping order ${shipment.id}`);
    return { shipped: shipment.id };
  },
});

app.eventHub('readSensors', {
  eventHubName: 'sensors',
  connection: 'EventHubConnection',
  cardinality: 'many',
  handler: async (readings, context) => {
    context.log(`${readings.length} readings`);
    return readings.length;
  },
});
