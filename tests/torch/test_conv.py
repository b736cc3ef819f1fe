"""Convolutions, pooling, padding and resizing against torch: every expression is evaluated in both."""

import functools
import itertools

import numpy as np
import pytest
import torch
from expressions import outcome

import rushlight

SETUP = """
nn, F, r = torch.nn, torch.nn.functional, torch.ones
"""

CONVOLUTIONS = """
F.conv2d(r(1,3,5,5),r(4,2,3,3))
F.conv2d(r(3,5,5),r(4,3,3,3))
F.conv2d(r(5,5),r(4,3,3,3))
F.conv2d(r(1,3,5,5),r(4,3,3))
F.conv1d(r(1,3,5,5),r(4,3,3))
F.conv1d(r(3),r(4,3,3))
F.conv2d(r(1,3,2,2),r(4,3,3,3))
F.conv2d(r(1,3,5,5),r(4,3,3,3),r(3))
F.conv2d(r(1,3,5,5),r(4,3,3,3),r(2,2))
F.conv2d(r(1,3,5,5),r(4,3,3,3).double())
F.conv2d(r(1,3,5,5),r(4,3,3,3),r(4).double())
F.conv2d(r(1,3,5,5).long(),r(4,3,3,3).long())
F.conv2d(r(1,3,5,5).bool(),r(4,3,3,3).bool())
F.conv2d(r(1,3,5,5).int(),r(4,3,3,3).int())
F.conv2d(r(1,3,5,5).half(),r(4,3,3,3).half())
F.conv2d(r(1,3,5,5).bfloat16(),r(4,3,3,3).bfloat16())
F.conv2d(r(1,3,5,5).to(torch.complex64),r(4,3,3,3).to(torch.complex64))
F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=0)
F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=-1)
F.conv2d(r(1,3,5,5),r(4,3,3,3),padding=-1)
F.conv2d(r(1,3,5,5),r(4,3,3,3),dilation=0)
F.conv2d(r(1,3,5,5),r(4,3,3,3),groups=0)
F.conv2d(r(1,3,5,5),r(4,3,3,3),groups=2)
F.conv2d(r(1,4,5,5),r(3,2,3,3),groups=2)
F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=(1,1,1))
F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=(1,))
F.conv2d(r(1,3,5,5),r(4,3,3,3),padding=(1,1,1))
F.conv2d(r(1,3,5,5),r(4,3,3,3),padding='same',stride=2)
F.conv2d(r(1,3,5,5),r(4,3,3,3),padding='foo')
F.conv2d(r(1,3,5,5),r(4,3,3,3),padding='same')
F.conv2d(r(0,3,5,5),r(4,3,3,3))
F.conv2d(r(1,3,5,5),r(0,3,3,3))
F.conv2d(r(2,3,0,5),r(4,3,3,3))
F.conv2d(r(2,3,0,5),r(4,3,3,3),padding=1)
F.conv2d(r(2,3,0,5),r(4,3,1,1))
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),output_padding=1)
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),output_padding=1,stride=2)
F.conv_transpose2d(r(1,3,5,5),r(4,4,3,3))
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),r(3))
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),padding=5)
F.conv_transpose2d(r(1,3,1,1),r(3,4,3,3),padding=2)
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),padding=-1)
F.conv_transpose2d(r(1,3,5,5),r(3,4,3,3),output_padding=-1)
F.conv_transpose2d(r(1,4,5,5),r(4,2,3,3),r(4),groups=2)
F.conv_transpose2d(r(1,4,5,5),r(4,2,3,3),r(2),groups=2)
F.conv_transpose2d(r(0,4,5,5),r(4,2,3,3))
F.conv_transpose2d(r(5,5),r(4,2,3,3))
F.conv_transpose2d(r(1,4,5,5),r(4,2,3,3),groups=3)
F.conv3d(r(1,4,5,5),r(4,4,3,3,3))
F.conv3d(r(4,5,5),r(4,4,3,3,3))
torch.conv_tbc(r(5,2,3),r(2,3,4),r(4),1)
torch.conv_tbc(r(5,2,3),r(2,3,4),r(5),1)
torch.convolution(r(1,3,5,5),r(4,3,3,3),None,[1,1],[0,0],[1,1],False,[0,0],1)
torch.convolution(r(1,3,5,5),r(4,3,3,3),None,[1],[0],[1],False,[0],1)
torch.convolution(r(1,3,5,5),r(4,3,3,3),None,[1],[0],[1],True,[0],1)
F.conv2d(torch.ones(1,3,5,5,device='meta'),torch.ones(4,3,3,3,device='meta'))
F.conv2d(r(1,3,5,5).double(),r(4,3,3,3))
F.conv2d(r(1,3,5,5).half(),r(4,3,3,3))
F.conv2d(r(1,3,5,5).long(),r(4,3,3,3))
F.conv2d(r(1,3,5,5),r(4,3,3,3).to(torch.complex64))
F.conv_transpose2d(r(1,3,5,5).long(),r(3,4,3,3).long())
F.conv_transpose2d(r(1,3,5,5).half(),r(3,4,3,3).half())
F.conv1d(r(1,3,5).long(),r(4,3,3).long())
F.conv3d(r(1,3,5,5,5).long(),r(4,3,3,3,3).long())
F.conv3d(r(1,3,5,5,5).bool(),r(4,3,3,3,3).bool())
F.conv2d(r(1,4,5,5).long(),r(4,1,3,3).long(),groups=4)
F.conv2d(r(1,4,5,5).long(),r(4,4,3,3).long(),dilation=2)
F.conv3d(r(1,4,5,5,5).long(),r(4,4,3,3,3).long(),dilation=2)
F.conv2d(r(0,3,5,5).long(),r(4,3,3,3).long())
F.conv2d(r(1,3,5,5).requires_grad_(),r(4,3,3,3)).grad_fn
F.conv2d(r(3,5,5).requires_grad_(),r(4,3,3,3)).grad_fn
F.conv1d(r(1,3,5).requires_grad_(),r(4,3,3)).grad_fn
F.conv_transpose2d(r(1,3,5,5).requires_grad_(),r(3,4,3,3)).grad_fn
F.conv2d(input=r(1,3,5,5),weight=r(4,3,2,4),bias=None,stride=1,padding=0,dilation=1,groups=1)
"""

POOLING = """
F.max_pool2d(r(1,3,5,5),2)
F.max_pool2d(r(5,5),2)
F.max_pool2d(r(3,5,5),2)
F.max_pool2d(r(0,3,5,5),2)
F.max_pool2d(r(1,0,5,5),2)
F.max_pool2d(r(1,3,0,5),2)
F.max_pool2d(r(1,3,5,5),0)
F.max_pool2d(r(1,3,5,5),2,0)
F.max_pool2d(r(1,3,5,5),2,1,2)
F.max_pool2d(r(1,3,5,5),2,1,-1)
F.max_pool2d(r(1,3,5,5),2,1,0,0)
F.max_pool2d(r(1,3,5,5),7)
F.max_pool2d(r(1,3,5,5),(2,2,2))
F.max_pool2d(r(1,3,5,5),2,(1,1,1))
F.max_pool2d(r(1,3,5,5),2,1,(1,1,1))
F.max_pool2d(r(1,3,5,5),2,1,0,(1,1,1))
F.max_pool2d(r(1,3,5,5).long(),2)
F.max_pool2d(r(1,3,5,5).bool(),2)
F.max_pool2d(r(1,3,5,5).half(),2)
F.max_pool2d(r(1,3,5,5).to(torch.complex64),2)
F.max_pool2d(r(1,3,5,5).requires_grad_(),2).grad_fn
F.max_pool1d(r(1,3,5).requires_grad_(),2).grad_fn
F.max_pool3d(r(1,3,5,5,5).requires_grad_(),2).grad_fn
F.avg_pool1d(r(1,3,5).requires_grad_(),2).grad_fn
F.avg_pool2d(r(1,3,5,5).requires_grad_(),2).grad_fn
F.avg_pool3d(r(1,3,5,5,5).requires_grad_(),2).grad_fn
F.adaptive_avg_pool1d(r(1,3,5).requires_grad_(),2).grad_fn
F.adaptive_avg_pool2d(r(1,3,5,5).requires_grad_(),2).grad_fn
F.adaptive_avg_pool2d(r(1,3,5,5).requires_grad_(),1).grad_fn
F.adaptive_avg_pool3d(r(1,3,5,5,5).requires_grad_(),2).grad_fn
F.adaptive_avg_pool3d(r(1,3,5,5,5).requires_grad_(),1).grad_fn
F.adaptive_max_pool1d(r(1,3,5).requires_grad_(),2).grad_fn
F.adaptive_max_pool2d(r(1,3,5,5).requires_grad_(),2).grad_fn
F.adaptive_max_pool3d(r(1,3,5,5,5).requires_grad_(),2).grad_fn
F.max_pool1d(r(3,5),2)
F.max_pool1d(r(5),2)
F.max_pool1d(r(1,3,5),7)
F.max_pool1d(r(1,3,5),2,1,2)
F.max_pool1d(r(1,3,5),0)
F.max_pool1d(r(1,3,5),2,-1)
F.max_pool1d(r(1,3,5).requires_grad_(),2,-1)
F.max_pool1d(r(1,3,5),2,1,0,0)
F.max_pool1d(r(1,3,5).long(),2)
F.max_pool1d(r(1,3,5).requires_grad_(),7)
F.max_pool1d(r(1,3,5).requires_grad_(),2,1,2)
F.max_pool1d(r(1,3,5),2,return_indices=True)
F.max_pool3d(r(3,5,5),2)
F.max_pool3d(r(1,3,5,5,5),7)
F.max_pool3d(r(1,3,5,5,5).long(),2)
F.max_pool3d(r(1,3,5,5,5),2,1,2)
F.avg_pool1d(r(5),2)
F.avg_pool1d(r(1,3,5),0)
F.avg_pool1d(r(1,3,5),2,1,2)
F.avg_pool1d(r(1,3,5),7)
F.avg_pool1d(r(1,3,5).long(),2)
F.avg_pool2d(r(1,3,5,5).long(),2)
F.avg_pool2d(r(1,3,5,5).int(),2)
F.avg_pool2d(r(1,3,5,5).bool(),2)
F.avg_pool2d(r(1,3,5,5).half(),2)
F.avg_pool3d(r(1,3,5,5,5).long(),2)
F.avg_pool3d(r(1,3,5,5,5).half(),2)
F.avg_pool2d(r(5,5),2)
F.avg_pool2d(r(1,3,5,5),7)
F.avg_pool2d(r(1,3,5,5),2,1,2)
F.avg_pool2d(r(1,3,5,5),2,0)
F.avg_pool2d(r(1,3,5,5),0)
F.avg_pool2d(r(1,3,5,5),(1,2,3))
F.avg_pool2d(r(1,3,5,5),2,(1,2,3))
F.avg_pool2d(r(1,3,5,5),2,1,(1,2,3))
F.avg_pool2d(r(1,3,5,5),2,divisor_override=0)
F.avg_pool2d(r(0,3,5,5),2)
F.avg_pool2d(r(1,0,5,5),2)
F.avg_pool2d(r(1,3,0,5),2)
F.adaptive_avg_pool1d(r(3,5),2)
F.adaptive_avg_pool1d(r(5),2)
F.adaptive_avg_pool1d(r(1,3,5),0)
F.adaptive_avg_pool1d(r(1,3,0),2)
F.adaptive_avg_pool1d(r(1,3,5),(2,2))
F.adaptive_avg_pool2d(r(5,5),2)
F.adaptive_avg_pool2d(r(1,3,5,5),(2,2,2))
F.adaptive_avg_pool2d(r(1,3,5,5),-1)
F.adaptive_avg_pool2d(r(1,3,5,5),(None,2))
F.adaptive_avg_pool2d(r(1,3,0,5),2)
F.adaptive_avg_pool2d(r(0,3,5,5),2)
F.adaptive_avg_pool2d(r(1,3,5,5).long(),2)
F.adaptive_avg_pool2d(r(1,3,5,5).long(),1)
F.adaptive_avg_pool2d(r(1,3,5,5).half(),2)
F.adaptive_avg_pool3d(r(3,5,5),2)
F.adaptive_avg_pool3d(r(1,3,5,5,5).long(),2)
F.adaptive_max_pool1d(r(5),2)
F.adaptive_max_pool1d(r(1,3,5),2,True)
F.adaptive_max_pool1d(r(1,3,5).long(),2)
F.adaptive_max_pool2d(r(5,5),2)
F.adaptive_max_pool2d(r(1,3,5,5).long(),2)
F.adaptive_max_pool2d(r(1,3,5,5),(2,))
F.adaptive_max_pool2d(r(1,3,0,5),2)
F.adaptive_max_pool2d(r(0,3,5,5),2)
F.adaptive_max_pool2d(r(1,3,5,5),-2)
F.adaptive_max_pool3d(r(1,3,5,5,5).long(),2)
F.adaptive_max_pool3d(r(5,5,5),2)
F.lp_pool1d(r(1,3,5),2,2)
F.lp_pool2d(r(1,3,5,5),2,2)
F.lp_pool3d(r(1,3,5,5,5),2,2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,3]]]]),2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,30]]]]),2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,-1]]]]),2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,3]]]]).int(),2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1]]]]),2)
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,3]]]]),2,output_size=(9,9))
F.max_unpool2d(r(1,1,2,2),torch.tensor([[[[0,1],[2,3]]]]),2,output_size=(5,5))
F.max_unpool2d(r(2,2),torch.tensor([[0,1],[2,3]]),2)
F.max_unpool1d(r(1,1,2),torch.tensor([[[0,1]]]),2)
F.max_unpool1d(r(1,1,2),torch.tensor([[[0,10]]]),2)
F.max_unpool3d(r(1,1,2,2,2),torch.zeros(1,1,2,2,2).long(),2)
F.max_unpool3d(r(1,1,2,2,2),torch.zeros(1,1,2,2,2).long()+70,2)
F.max_unpool2d(r(1,1,2,2).requires_grad_(),torch.tensor([[[[0,1],[2,3]]]]),2).grad_fn
F.fractional_max_pool2d(r(1,3,6,6),2)
F.fractional_max_pool2d(r(1,3,6,6),2,output_size=3)
F.fractional_max_pool2d(r(1,3,6,6),2,output_ratio=0.5)
F.fractional_max_pool2d(r(1,3,6,6),2,output_ratio=1.5)
F.fractional_max_pool2d(r(1,3,6,6),2,output_size=7)
F.fractional_max_pool2d(r(1,3,6,6).half(),2,output_size=3)
F.fractional_max_pool2d(r(1,3,6,6).bfloat16(),2,output_size=3)
F.fractional_max_pool2d(r(6,6),2,output_size=3)
F.fractional_max_pool2d(r(1,3,6,6).requires_grad_(),2,output_size=3).grad_fn
F.fractional_max_pool3d(r(1,3,6,6,6).requires_grad_(),2,output_size=3).grad_fn
F.fractional_max_pool2d(r(1,3,6,6),2,output_size=3,_random_samples=torch.rand(1,3,3))
F.fractional_max_pool2d(r(1,3,6,6),2,output_size=3,_random_samples=torch.rand(1,2,2))
torch.max_pool1d_with_indices(r(1,3,5),2)
F.max_pool2d_with_indices(r(1,3,5,5),2)
F.adaptive_max_pool2d_with_indices(r(1,3,5,5),2)
"""

RESIZING = """
F.interpolate(r(1,3,5,5),scale_factor=2)
F.interpolate(r(1,3,5,5))
F.interpolate(r(1,3,5,5),size=3,scale_factor=2)
F.interpolate(r(1,3,5,5),size=(3,3,3))
F.interpolate(r(1,3,5,5),scale_factor=(3,3,3))
F.interpolate(r(1,3,5,5),size=3,mode='linear')
F.interpolate(r(1,3,5),size=3,mode='bilinear')
F.interpolate(r(1,3,5,5),size=3,mode='foo')
F.interpolate(r(1,3,5,5),size=3,mode='nearest',align_corners=True)
F.interpolate(r(1,3,5,5),size=3,mode='nearest',antialias=True)
F.interpolate(r(5,5),size=3)
F.interpolate(r(1,3,5,5),size=0)
F.interpolate(r(1,3,5,5),size=-1)
F.interpolate(r(1,3,5,5),size=2,recompute_scale_factor=True)
F.interpolate(r(1,3,5,5),scale_factor=1.5,recompute_scale_factor=True,mode='bilinear')
F.interpolate(r(1,3,0,5),size=2)
F.interpolate(r(0,3,5,5),size=2,mode='bilinear')
F.interpolate(r(1,0,5,5),size=2,mode='bilinear')
F.interpolate(r(1,3,5,5).long(),size=2)
F.interpolate(r(1,3,5,5).byte(),size=2)
F.interpolate(r(1,3,5,5).byte(),size=2,mode='bilinear')
F.interpolate(r(1,3,5,5).byte(),size=2,mode='bicubic')
F.interpolate(r(1,3,5).byte(),size=2,mode='linear')
F.interpolate(r(1,3,5,5,5).byte(),size=2,mode='trilinear')
F.interpolate(r(1,3,5,5).long(),size=2,mode='bilinear')
F.interpolate(r(1,3,5,5).half(),size=2,mode='bilinear')
F.interpolate(r(1,3,5,5).bfloat16(),size=2,mode='bicubic',antialias=True)
F.interpolate(r(1,3,5,5).half(),size=2,mode='bicubic',antialias=True)
F.interpolate(r(1,3,5,5).bool(),size=2)
F.interpolate(r(1,3,5,5).to(torch.complex64),size=2)
F.interpolate(r(1,3,5,5,5),size=2,mode='trilinear')
F.interpolate(r(1,3,5,5).requires_grad_(),size=2,mode='area').grad_fn
F.interpolate(r(1,3,5).requires_grad_(),size=2).grad_fn
F.interpolate(r(1,3,5).requires_grad_(),size=2,mode='nearest-exact').grad_fn
F.interpolate(r(1,3,5).requires_grad_(),size=2,mode='linear').grad_fn
F.interpolate(r(1,3,5,5).requires_grad_(),size=2,mode='bilinear').grad_fn
F.interpolate(r(1,3,5,5).requires_grad_(),size=2,mode='bilinear',antialias=True).grad_fn
F.interpolate(r(1,3,5,5).requires_grad_(),size=2,mode='bicubic').grad_fn
F.interpolate(r(1,3,5,5).requires_grad_(),size=2).grad_fn
F.interpolate(r(1,3,5,5,5).requires_grad_(),size=2,mode='trilinear').grad_fn
F.pad(r(1,3,5).requires_grad_(),(1,1),mode='reflect').grad_fn
F.pad(r(1,3,5,5).requires_grad_(),(1,1,1,1),mode='replicate').grad_fn
F.pad(r(1,3,5,5).requires_grad_(),(1,1,1,1),mode='circular').grad_fn
F.pad(r(1,3,5,5).requires_grad_(),(1,1,1,1)).grad_fn
F.pad(r(1,3,5,5),(1,1,1))
F.pad(r(1,3,5,5),(1,1,1,1,1,1,1,1,1,1))
F.pad(r(1,3,5,5),(-3,-3))
F.pad(r(1,3,5,5),(-3,-2))
F.pad(r(1,3,5,5),(1,1),mode='reflect')
F.pad(r(1,3,5,5),(1,1,1,1,1,1),mode='reflect')
F.pad(r(3,5,5),(5,1,1,1),mode='reflect')
F.pad(r(3,5,5),(1,1,-1,1),mode='reflect')
F.pad(r(3,5),(5,1),mode='reflect')
F.pad(r(5),(1,1),mode='reflect')
F.pad(r(5),(1,1),mode='replicate')
F.pad(r(5),(1,1),mode='circular')
F.pad(r(3,5),(6,1),mode='circular')
F.pad(r(3,5),(5,1),mode='circular')
F.pad(r(3,5),(-3,-3),mode='circular')
F.pad(r(3,5),(-5,-1),mode='replicate')
F.pad(r(3,5),(-3,1),mode='replicate')
F.pad(r(3,5),(-3,1),mode='reflect')
F.pad(r(3,5),(1,1),mode='foo')
F.pad(r(3,5),(1,1),mode='reflect',value=3)
F.pad(r(3,0),(1,1),mode='replicate')
F.pad(r(3,0),(1,1),mode='circular')
F.pad(r(0,5),(1,1),mode='reflect')
F.pad(r(0,3,5),(1,1),mode='reflect')
F.pad(r(3,5).long(),(1,1),mode='reflect')
F.pad(r(3,5).bool(),(1,1),mode='reflect')
F.pad(r(3,5).bool(),(1,1),mode='replicate')
F.pad(r(3,5).long(),(1,1),mode='replicate')
F.pad(r(3,5).long(),(1,1),mode='circular')
F.pad(r(3,5).bool(),(1,1),mode='circular')
F.pad(r(3,5).long(),(1,1),value=2.5)
F.pad(r(3,5).bool(),(1,1))
F.pad(r(3,5),())
F.pad(r(3,5),1)
F.pad(r(3,5),(1.5,1))
F.pad(r(3,5),(0,0))
torch.constant_pad_nd(r(3,5),(0,1),2)
torch.constant_pad_nd(r(3,5),(-3,-3),2)
F.unfold(r(1,3,5,5),2)
F.unfold(r(3,5,5),2)
F.unfold(r(5,5),2)
F.unfold(r(1,3,5,5),7)
F.unfold(r(1,3,5,5),2,stride=0)
F.unfold(r(1,3,5,5),2,dilation=0)
F.unfold(r(1,3,5,5),2,padding=-1)
F.unfold(r(0,3,5,5),2)
F.unfold(r(1,0,5,5),2)
F.unfold(r(1,3,5,5).long(),2)
F.unfold(r(1,3,5,5).bool(),2)
F.unfold(r(1,3,5,5),(2,2,2))
F.fold(r(1,12,16),(5,5),2)
F.fold(r(12,16),(5,5),2)
F.fold(r(1,12,15),(5,5),2)
F.fold(r(1,13,16),(5,5),2)
F.fold(r(1,12,16).long(),(5,5),2)
F.fold(r(1,12,16),(5,5),0)
F.fold(r(1,12,16),(1,1),2)
F.fold(r(12),(5,5),2)
F.fold(r(0,12,16),(5,5),2)
F.unfold(r(1,3,5,5).requires_grad_(),2).grad_fn
F.fold(r(1,12,16).requires_grad_(),(5,5),2).grad_fn
F.pixel_shuffle(r(1,4,3,3),2)
F.pixel_shuffle(r(1,3,3,3),2)
F.pixel_shuffle(r(3,3),2)
F.pixel_shuffle(r(1,4,3,3),0)
F.pixel_unshuffle(r(1,1,4,4),2)
F.pixel_unshuffle(r(1,1,3,4),2)
F.pixel_unshuffle(r(1,1,4,3),2)
F.pixel_unshuffle(r(1,1,4,3),0)
F.pixel_unshuffle(r(4,3),2)
F.channel_shuffle(r(1,4,2,2),2)
F.channel_shuffle(r(1,4,2,2),3)
F.channel_shuffle(r(1,4,2,2),0)
F.channel_shuffle(r(4,2),2)
torch.native_channel_shuffle(r(1,4,2,2),2)
F.upsample(r(1,3,5,5),scale_factor=2)
F.upsample_bilinear(r(1,3,5,5),scale_factor=2)
F.upsample_nearest(r(1,3,5,5),scale_factor=2)
"""

MORE = """
F.interpolate(torch.arange(9.0).reshape(1, 1, 9), scale_factor=1.1)
F.interpolate(torch.arange(81.0).reshape(1, 1, 9, 9), scale_factor=1.1)
F.conv2d(r(1,1,4,4),r(1,1,2,2),r(1),dilation=(-1,))
F.conv2d(r(1,1,4,2).double(),r(1,1,2,5).double(),r(1).double(),dilation=(-1,))
F.conv2d(r(1,1,4,4),r(1,1,2,2),r(1),dilation=(0,1))
F.conv2d(r(1,1,4,3),r(1,2,2),r(1),padding='same')
F.conv1d(r(1,1,4),r(1,2),r(1))
F.conv1d(r(1,1,4),r(1,2),r(1),padding='same')
F.conv3d(r(1,1,3,4,5),r(1,1,4,3),r(1),padding='same')
F.conv1d(r(1,1,4).long(),r(1,1,2).long(),r(1).double())
F.conv1d(r(1,1,4).short(),r(1,1,2).short(),r(1).double())
F.conv1d(r(1,1,4).byte(),r(1,1,2).byte(),r(1).double())
F.max_pool1d(r(0,1,49),kernel_size=2, stride=50, padding=-1, return_indices=True)
F.max_pool1d(r(0,1,49),kernel_size=2, stride=50, padding=4, return_indices=True)
F.max_pool1d(r(2,1,49),kernel_size=2, stride=0, return_indices=True)
F.max_pool1d(r(2,1,49),kernel_size=0, return_indices=True)
F.max_pool1d(r(2,1,49),kernel_size=60, return_indices=True)
F.max_pool1d(r(2,0,49),kernel_size=6, return_indices=True)
F.max_pool1d(r(49),kernel_size=6, return_indices=True)
F.max_pool1d(r(2,1,49).long(),kernel_size=6, return_indices=True)
F.max_pool1d(r(2,1,49).bool(),kernel_size=6, return_indices=True)
F.adaptive_avg_pool2d(r(2,2),(2,2))
F.adaptive_avg_pool3d(r(2,2,2),(2,2,2))
F.adaptive_max_pool2d(r(2,2),(2,2))
F.adaptive_max_pool3d(r(2,2,2),(2,2,2))
F.adaptive_max_pool1d(r(2),(2,))
F.adaptive_avg_pool1d(r(2),(2,))
F.max_pool3d(r(0,1,2,10),kernel_size=1)
F.max_pool3d(r(2,1,0,1,2),kernel_size=1)
F.max_pool3d(r(2,1,1,0,2),kernel_size=1)
F.max_pool3d(r(2,0,1,1,2),kernel_size=1)
F.max_pool3d(r(1,2,0,1),kernel_size=1)
F.max_pool3d(r(0,2,2,2,1),kernel_size=1)
F.avg_pool3d(r(0,1,49),2,50)
F.avg_pool3d(r(0,1,4,4),2)
F.avg_pool3d(r(2,1,0,4,4),2)
F.avg_pool3d(r(2,1,2,4,4,4),2)
F.adaptive_max_pool1d(r(1,2,3),())
F.adaptive_max_pool1d(r(1,2,3),(-1,))
F.adaptive_avg_pool1d(r(1,2,3),())
F.adaptive_avg_pool1d(r(1,2,3),-1)
F.adaptive_avg_pool3d(r(1,1,1,1,1),(-1,0,2))
F.conv_transpose2d(r(2,2,4,4),r(2,2,2,2),stride=1, output_padding=(2, 3), dilation=4)
F.conv_transpose2d(r(1,16,40,40),r(16,16,2,2),stride=1, output_padding=(2, 3), dilation=4).sum()
F.avg_pool2d(r(1,3,9,9).long(),3,out=torch.zeros(1,dtype=torch.float64))
F.avg_pool2d(r(1,3,9,9),3,out=torch.zeros(0))
"""

GRIDS = """
F.grid_sample(r(1,3,4,4),r(1,2,2,2))
F.grid_sample(r(1,3,4,4),r(1,2,2,3))
F.grid_sample(r(1,3,4,4),r(2,2,2,2))
F.grid_sample(r(3,4,4),r(2,2,2))
F.grid_sample(r(1,3,4,4).double(),r(1,2,2,2))
F.grid_sample(r(1,3,4,4),r(1,2,2,2),mode='foo')
F.grid_sample(r(1,3,4,4),r(1,2,2,2),padding_mode='foo')
F.grid_sample(r(1,3,4,4,4),r(1,2,2,2,3),mode='bicubic')
F.grid_sample(r(1,3,0,4),r(1,2,2,2))
F.grid_sample(r(0,3,4,4),r(0,2,2,2))
F.grid_sample(r(1,3,4,4).long(),r(1,2,2,2).long())
F.grid_sample(r(1,3,4,4).half(),r(1,2,2,2).half())
F.grid_sample(r(1,3,4,4).bfloat16(),r(1,2,2,2).bfloat16())
F.grid_sample(r(1,3,4,4,4).half(),r(1,2,2,2,3).half())
F.grid_sample(r(1,3,4,4),r(1,2,2))
F.affine_grid(r(1,2,3),(1,3,4,4))
F.affine_grid(r(1,3,4),(1,3,4,4,4))
F.affine_grid(r(1,3,4),(1,3,4,4))
F.affine_grid(r(2,3),(1,3,4,4))
F.affine_grid(r(1,2,3),(1,3,4))
F.affine_grid(r(1,2,3),(1,3,0,4))
F.affine_grid(r(1,2,3).long(),(1,3,4,4))
F.affine_grid(r(1,2,3),(1,3,4,4,4))
F.grid_sample(r(1,3,4,4),r(1,2,2,2),align_corners=True)
torch.grid_sampler_2d(r(1,3,4,4,4),r(1,2,2,2,3),0,0,False)
torch.grid_sampler_3d(r(1,3,4,4),r(1,2,2,2),0,0,False)
"""

LAYERS = """
nn.Conv2d(4,8,3)
nn.Conv2d(4,8,3,2,1,2,2,False,'reflect')
nn.Conv2d(4,8,3,padding='same')
nn.ConvTranspose2d(4,8,3,2,1,1,2)
nn.Conv1d(4,8,3)
nn.LazyConv2d(8,3)
nn.MaxPool1d(2)
nn.MaxPool2d(2)
nn.MaxPool2d((2,1),1,1,1,True,True)
nn.MaxUnpool2d(2)
nn.AvgPool1d(2)
nn.AvgPool2d(2)
nn.AvgPool3d(2)
nn.AdaptiveAvgPool2d((None,2))
nn.AdaptiveMaxPool2d(3)
nn.FractionalMaxPool2d(2,output_size=2)
nn.LPPool2d(2,3)
nn.ConstantPad1d(2,3.5)
nn.ConstantPad2d((1,2,3,4),1)
nn.ReflectionPad2d(1)
nn.ZeroPad2d(1)
nn.CircularPad3d(1)
nn.Upsample(scale_factor=2)
nn.Upsample(size=3,mode='bilinear',align_corners=True)
nn.UpsamplingNearest2d(scale_factor=2)
nn.UpsamplingBilinear2d(size=3)
nn.Fold((4,4),2)
nn.Unfold(2)
nn.PixelShuffle(2)
nn.PixelUnshuffle(2)
nn.ChannelShuffle(2)
nn.Conv2d(3,4,3,groups=2)
nn.Conv2d(4,3,3,groups=2)
nn.Conv2d(4,4,3,groups=0)
nn.Conv2d(4,4,3,padding='same',stride=2)
nn.ConvTranspose2d(4,4,3,padding_mode='reflect')
nn.Conv2d(4,4,(2,3),padding='same',padding_mode='reflect')._reversed_padding_repeated_twice
nn.Conv2d(4,4,3,1,(1,2),padding_mode='circular')._reversed_padding_repeated_twice
nn.FractionalMaxPool2d(2)
nn.FractionalMaxPool2d(2,output_size=2,output_ratio=.5)
nn.FractionalMaxPool2d(2,output_ratio=1.5)
nn.ConvTranspose2d(4,4,3)(torch.ones(1,4,5,5),output_size=[9,9])
nn.ConvTranspose2d(4,4,3,2)(torch.ones(1,4,5,5),output_size=[12])
nn.LazyConv2d(8,3)(torch.ones(5,5))
nn.LazyConv2d(8,3,groups=3)(torch.ones(4,5,5))
torch.manual_seed(3) and nn.Conv2d(2,3,3).weight
torch.manual_seed(3) and nn.Conv2d(2,3,3).bias
torch.manual_seed(3) and nn.ConvTranspose2d(4,2,3,2,groups=2)(torch.ones(1,4,2,2),output_size=[6,6])
torch.manual_seed(3) and nn.LazyConv2d(3,3)(torch.rand(2,4,4))
torch.manual_seed(3) and nn.LazyConvTranspose1d(3,3)(torch.rand(2,2,4))
torch.manual_seed(3) and nn.Conv2d(2,3,(2,3),padding='same',padding_mode='reflect')(torch.rand(2,4,4))
torch.manual_seed(3) and nn.Conv1d(2,3,3,padding=2,padding_mode='circular')(torch.rand(1,2,4))
torch.manual_seed(3) and nn.Conv3d(2,3,2,padding=1,padding_mode='replicate')(torch.rand(1,2,2,2,2))
torch.manual_seed(3) and nn.FractionalMaxPool2d(2,output_ratio=(.5,.5))(torch.rand(2,2,6,6))
torch.manual_seed(3) and nn.FractionalMaxPool3d(2,output_size=2)(torch.rand(2,2,6,6,6))
nn.MaxUnpool2d(2)(*nn.MaxPool2d(2,return_indices=True)(torch.arange(16.).reshape(1,1,4,4)))
nn.Upsample(scale_factor=(2,3),mode='bicubic')(torch.arange(16.).reshape(1,1,4,4)).shape
list(nn.Conv2d(2,3,3).state_dict())
"""

BLOCKS = (CONVOLUTIONS, POOLING, RESIZING, MORE, GRIDS, LAYERS)
TABLE = [line for block in BLOCKS for line in block.strip().split("\n")]


@pytest.mark.parametrize("text", TABLE)
def test_expression(text):
    assert outcome(rushlight, text, SETUP) == outcome(torch, text, SETUP)


CHANNELS_LAST = {
    "pointwise": lambda t, x, w, b: t.nn.functional.conv2d(x, w, b),
    "pointwise without bias": lambda t, x, w, b: t.nn.functional.conv2d(x, w),
    "bilinear": lambda t, x, w, b: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda t, x, w, b: t.nn.functional.interpolate(x, size=(11, 3)),
    "bicubic, antialiased": lambda t, x, w, b: t.nn.functional.interpolate(
        x, size=(3, 4), mode="bicubic", antialias=True
    ),
    "average": lambda t, x, w, b: t.nn.functional.avg_pool2d(x, 2, 1, 1),
    "adaptive": lambda t, x, w, b: t.nn.functional.adaptive_avg_pool2d(x, (3, 2)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(2, 5, 7, 6), (1, 1, 4, 5), (3, 4, 1, 9)])
@pytest.mark.parametrize("case", CHANNELS_LAST)
def test_channels_last_stay_last(case, shape, dtype):
    if dtype == "float16" and "antialiased" in case:
        pytest.skip("torch has none")
    results = []
    for library in (torch, rushlight):
        t = functools.partial(library.tensor, dtype=getattr(library, dtype))
        rng = np.random.default_rng(0)
        x, w, b = (rng.standard_normal(s).tolist() for s in (shape, (3, shape[1], 1, 1), (3,)))
        x = t(x).to(memory_format=library.channels_last).requires_grad_()
        y = CHANNELS_LAST[case](library, x, t(w), t(b))
        y.square().sum().backward()
        results.append((y.stride(), y.tolist(), x.grad.tolist()))
    assert results[0][0] == results[1][0]
    for theirs, ours in zip(results[0][1:], results[1][1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.02 if dtype == "float16" else 1e-4, atol=1e-3)


FORMATS = ["channels_last", "contiguous_format", "preserve_format"]


@pytest.mark.parametrize("source", FORMATS[:2])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(1, 1, 4, 5), (2, 1, 4, 5), (1, 3, 1, 1), (2, 3, 4, 5), (1, 1, 1, 1)])
def test_formats_where_sizes_of_one_leave_them_open(shape, format, source):
    results = []
    for library in (torch, rushlight):
        x = library.ones(shape).to(memory_format=getattr(library, source))
        wanted = getattr(library, format)
        made = [
            x, x.to(memory_format=wanted), x.to(library.float64, memory_format=wanted), x.clone(), x.double(),
            x.clone(memory_format=wanted), x.half(memory_format=wanted), library.empty_like(x),
            library.empty(0).resize_as_(x, memory_format=library.preserve_format),
            x.transpose(2, 3).to(memory_format=wanted), library.zeros_like(x, memory_format=wanted),
        ]  # fmt: skip
        results.append([[y.stride(), y is x] for y in made])
    assert results[0] == results[1]


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bfloat16", "float64"])
def test_padded_lines(mode, dtype):
    """Widened, narrowed and both; of one element too."""
    for length in (1, 2, 5, 9):
        for left, right in itertools.product((-4, -1, 0, 1, 4, 8), repeat=2):
            results = []
            for lib in (rushlight, torch):
                x = lib.arange(6 * length).reshape(3, 2, length).transpose(0, 1).to(getattr(lib, dtype))
                try:
                    results.append(lib.nn.functional.pad(x, (left, right), mode=mode).tolist())
                except RuntimeError as error:
                    results.append(str(error).split(".")[0])
            assert results[0] == results[1], (length, left, right)
