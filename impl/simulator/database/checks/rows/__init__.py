"""Promises that rows on the disks of replicas show broken, before anybody reads them."""
